package scan

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// topicMap generates XTM 1.0: per topic one type, one subject identifier, two
// names, one of them scoped, two occurrences, and three associations for two
// topics.
func topicMap(topics int) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">
`)
	for i := range topics {
		fmt.Fprintf(&b, `  <topic id="t%d">
    <instanceOf><topicRef xlink:href="#type%d"/></instanceOf>
    <subjectIdentity>
      <subjectIndicatorRef xlink:href="http://psi.example.org/topic/%d"/>
    </subjectIdentity>
    <baseName><baseNameString>Topic number %d</baseNameString></baseName>
    <baseName>
      <scope><topicRef xlink:href="#lang%d"/></scope>
      <baseNameString>Thème numéro %d &amp; more</baseNameString>
    </baseName>
    <occurrence>
      <instanceOf><topicRef xlink:href="#homepage"/></instanceOf>
      <resourceRef xlink:href="http://www.example.org/pages/%d.html"/>
    </occurrence>
    <occurrence>
      <instanceOf><topicRef xlink:href="#description"/></instanceOf>
      <resourceData>This is the description of topic number %d, long enough to be a sentence.</resourceData>
    </occurrence>
  </topic>
`, i, i%20, i, i, i%5, i, i, i)
		for j := range 1 + i%2 {
			fmt.Fprintf(&b, `  <association>
    <instanceOf><topicRef xlink:href="#relation%d"/></instanceOf>
    <member><roleSpec><topicRef xlink:href="#left"/></roleSpec><topicRef xlink:href="#t%d"/></member>
    <member><roleSpec><topicRef xlink:href="#right"/></roleSpec><topicRef xlink:href="#t%d"/></member>
  </association>
`, j, i, i/2)
		}
	}
	b.WriteString("</topicMap>\n")
	return b.Bytes()
}

// drain reads all events and looks at each of them.
func drain(s *Scanner) (events, size int, err error) {
	for {
		kind, err := s.Next()
		if err == io.EOF {
			return events, size, nil
		}
		if err != nil {
			return events, size, err
		}
		events++
		switch kind {
		case StartElement:
			for _, a := range s.Attrs() {
				size += len(a.Value)
			}
		case Text:
			size += len(s.Text())
		}
	}
}

func drainStandard(document []byte) error {
	for d := xml.NewDecoder(bytes.NewReader(document)); ; {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// BenchmarkScan reads a topic map of some megabytes, as it is and in other forms.
// x_encoding/xml is the ratio of its speed to that of encoding/xml on the original form, in the same run.
func BenchmarkScan(b *testing.B) {
	document := topicMap(4000)
	standard := time.Hour
	for range 2 {
		begin := time.Now()
		require.NoError(b, drainStandard(document))
		standard = min(standard, time.Since(begin))
	}
	perByte := standard.Seconds() / float64(len(document))

	for _, form := range []struct {
		name     string
		document []byte
	}{
		{"UTF-8", document},
		{"CRLF", bytes.ReplaceAll(document, []byte("\n"), []byte("\r\n"))},
		{"ISO-8859-1", inEncoding(b, charmap.ISO8859_1, "ISO-8859-1", document)},
		{"windows-1252", inEncoding(b, charmap.Windows1252, "windows-1252", document)},
		{"UTF-16", inEncoding(b, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "UTF-16", document)},
	} {
		b.Run(form.name, func(b *testing.B) {
			s := NewScanner(bytes.NewReader(nil), Options{})
			b.SetBytes(int64(len(form.document)))
			b.ReportAllocs()
			for b.Loop() {
				s.Reset(bytes.NewReader(form.document), "")
				if _, _, err := drain(s); err != nil {
					b.Fatal(err)
				}
			}
			scan := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(perByte*float64(len(form.document))/scan, "x_encoding/xml")
		})
	}
}

func inEncoding(b *testing.B, to encoding.Encoding, label string, document []byte) []byte {
	out, err := to.NewEncoder().Bytes(bytes.Replace(document, []byte("UTF-8"), []byte(label), 1))
	require.NoError(b, err)
	return out
}

// BenchmarkPositions asks for the position of each event.
func BenchmarkPositions(b *testing.B) {
	document := topicMap(4000)
	s := NewScanner(bytes.NewReader(nil), Options{})
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		s.Reset(bytes.NewReader(document), "")
		for {
			if _, err := s.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			s.Position()
		}
	}
}

// BenchmarkFragment reads a document of 1 KB, with a scanner of its own and with
// one that is used again.
func BenchmarkFragment(b *testing.B) {
	document := topicMap(1)
	b.Run("new", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := drain(NewScanner(bytes.NewReader(document), Options{})); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reset", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		b.ReportAllocs()
		s := NewScanner(bytes.NewReader(nil), Options{})
		for b.Loop() {
			s.Reset(bytes.NewReader(document), "")
			if _, _, err := drain(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
