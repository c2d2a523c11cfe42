package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// statements is the number of statements of RDF to read, with -short a tenth.
func statements() int {
	if testing.Short() {
		return 40_000
	}
	return 400_000
}

// BenchmarkRDF reads a thesaurus in three notations. The references are raptor2-utils and serdi of Debian, whose whole
// processes are timed: they read it and count, or write nothing.
func BenchmarkRDF(b *testing.B) {
	for _, notation := range synthetic.Notations {
		file := thesaurus(b, notation)
		b.Run(notation, func(b *testing.B) {
			var n int
			d := bestOf(b, func() {
				n = 0
				readRDF(b, notation, file, func(rdf.Quad) error {
					n++
					return nil
				})
			})
			require.Equal(b, statements(), n)
			rate(b, float64(n), "statements", d)
			formats := map[string]string{"NTriples": "ntriples", "Turtle": "turtle", "RDFXML": "rdfxml"}
			if t, ok := program(b, "rapper", "-q", "-c", "-i", formats[notation], file, "http://example.org/"); ok {
				ratio(b, t.Seconds(), d.Seconds(), "speed-of-rapper")
			}
			if notation == "RDFXML" {
				return // serdi has no such reader
			}
			if t, ok := program(b, "serdi", "-i", formats[notation], "-o", "ntriples", file); ok {
				ratio(b, t.Seconds(), d.Seconds(), "speed-of-serdi")
			}
		})
	}
}

// BenchmarkRDFMap makes a topic map of a thesaurus in N-Triples. The reference loads the same map from XTM 2.1: both
// have the same names, occurrences and associations.
func BenchmarkRDFMap(b *testing.B) {
	file := thesaurus(b, "NTriples")
	var m *tmdm.TopicMap
	d := bestOf(b, func() {
		builder := mapping.NewBuilder(synthetic.Base, 0, mapping.Options{})
		readRDF(b, "NTriples", file, builder.Add)
		var err error
		m, err = builder.Map(b.Context())
		require.NoError(b, err)
	})
	total := 0
	for t := range m.Topics() {
		total += len(t.Names()) + len(t.Occurrences())
	}
	require.Equal(b, statements(), total+count(m.Associations()))
	var document bytes.Buffer
	_, err := xtm.Write(&document, m, xtm.WriteOptions{Version: xtm.V21})
	require.NoError(b, err)
	m = nil
	load := best(rounds(), func() {
		_, err := xtm.Read(b.Context(), bytes.NewReader(document.Bytes()), xtm.Options{Base: synthetic.Base})
		require.NoError(b, err)
	})
	rate(b, float64(statements()), "statements", d)
	ratio(b, load.Seconds(), d.Seconds(), "speed-of-loading-XTM")
}

// BenchmarkConvertRDF converts a thesaurus with the command, in processor time of the whole process: between notations,
// and to and from a topic map. The reference is rapper, which reads the same file and writes N-Triples. For the map it
// reads the N-Triples that become the map, or that are made of it. The most memory is compared with that of a quarter
// of the file.
func BenchmarkConvertRDF(b *testing.B) {
	client, folder := build(b, "tmshare-client"), b.TempDir()
	lines := thesaurus(b, "NTriples")
	document := filepath.Join(folder, "map.xtm")
	out, err := exec.Command(client, "convert", "--from", "nt", lines, document).CombinedOutput()
	require.NoError(b, err, "%s", out)
	for _, c := range []struct{ name, from, to, file, notation string }{
		{"NTriples", "ntriples", "ntriples", lines, "ntriples"},
		{"Turtle", "turtle", "ntriples", thesaurus(b, "Turtle"), "turtle"},
		{"RDFXML", "rdfxml", "ntriples", thesaurus(b, "RDFXML"), "rdfxml"},
		{"ToTurtle", "ntriples", "turtle", lines, "ntriples"},
		{"ToMap", "ntriples", "xtm2.1", lines, "ntriples"},
		{"FromMap", "xtm2.1", "ntriples", document, "ntriples"},
	} {
		b.Run(c.name, func(b *testing.B) {
			convert := func(file string) (cpu time.Duration, peak float64) {
				cmd := exec.Command(client, "convert", "-q", "--from", c.from, "--to", c.to, file, filepath.Join(folder, "out"))
				peak = peakWhile(b, cmd)
				return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak
			}
			shortest, most := never, 0.0
			for b.Loop() {
				for range rounds() {
					cpu, peak := convert(c.file)
					shortest, most = min(shortest, cpu), max(most, peak)
				}
			}
			rate(b, float64(statements()), "statements", shortest)
			b.ReportMetric(most, "peak-MB")
			read := c.file
			if c.name == "FromMap" {
				read = lines
			}
			if t, ok := program(b, "rapper", "-q", "-i", c.notation, "-o", "ntriples", read, "http://example.org/"); ok {
				ratio(b, t.Seconds(), shortest.Seconds(), "speed-of-rapper")
			}
			if c.name == "NTriples" || c.name == "ToTurtle" {
				_, peak := convert(quarter(b, c.file))
				ratio(b, most, peak, "peak-of-a-quarter")
			}
		})
	}
}

// peakWhile runs a program, and returns the peak of its memory in MB, by polling. The system's own figure after its end
// may be that of the parent process.
func peakWhile(b *testing.B, cmd *exec.Cmd) (peak float64) {
	require.NoError(b, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	seen := &node{b: b, cmd: cmd}
	for {
		select {
		case err := <-ended:
			require.NoError(b, err)
			return peak
		case <-time.After(2 * time.Millisecond):
			if now, ok := seen.mayHave("VmHWM:"); ok {
				peak = now / 1e6
			}
		}
	}
}

// quarter returns a file with the first quarter of the lines of another.
func quarter(b *testing.B, file string) string {
	data, err := os.ReadFile(file)
	require.NoError(b, err)
	data = data[:len(data)/4]
	part := filepath.Join(b.TempDir(), "quarter")
	require.NoError(b, os.WriteFile(part, data[:bytes.LastIndexByte(data, '\n')+1], 0o600))
	return part
}

func thesaurus(b *testing.B, notation string) string {
	file := filepath.Join(b.TempDir(), "thesaurus")
	f, err := os.Create(file)
	require.NoError(b, err)
	require.NoError(b, synthetic.WriteSKOS(f, notation, statements()/synthetic.StatementsPerConcept))
	require.NoError(b, f.Close())
	return file
}

func readRDF(b *testing.B, notation, file string, each func(rdf.Quad) error) {
	f, err := os.Open(file)
	require.NoError(b, err)
	defer f.Close()
	switch notation {
	case "NTriples":
		err = turtle.Read(f, turtle.NTriples, turtle.Options{URI: file}, each)
	case "Turtle":
		err = turtle.Read(f, turtle.Turtle, turtle.Options{URI: file}, each)
	default:
		err = rdfxml.Read(f, rdfxml.Options{URI: file}, each)
	}
	require.NoError(b, err)
}

// program returns the processor time of a program that reads a file, if it is installed.
func program(b *testing.B, name string, args ...string) (time.Duration, bool) {
	path, err := exec.LookPath(name)
	if err != nil {
		fmt.Printf("NOT CHECKED: no ratios to %s, which is not installed\n", name)
		return 0, false
	}
	shortest := never
	for range rounds() {
		cmd := exec.Command(path, args...)
		cmd.Stdout = io.Discard
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		require.NoError(b, cmd.Run(), "%s", complaint.String())
		shortest = min(shortest, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return shortest, true
}
