package xtm_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func mondial(b *testing.B) []byte {
	data, err := io.ReadAll(openMap(b, filepath.Join(testenv.Shared(b, "data"), "mondial.xtm.gz")))
	require.NoError(b, err)
	return data
}

// BenchmarkRead loads a real map, and reports how long that takes in terms of
// what encoding/xml takes to split the same document into tokens.
func BenchmarkRead(b *testing.B) {
	data := mondial(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var reading, tokens time.Duration
	for b.Loop() {
		start := time.Now()
		d := xml.NewDecoder(bytes.NewReader(data))
		for {
			if _, err := d.Token(); err != nil {
				break
			}
		}
		tokens += time.Since(start)
		start = time.Now()
		if _, err := xtm.Read(b.Context(), bytes.NewReader(data), xtm.Options{Base: fuzzBase}); err != nil {
			b.Fatal(err)
		}
		reading += time.Since(start)
	}
	b.ReportMetric(reading.Seconds()/tokens.Seconds(), "x-encoding/xml")
	b.ReportMetric(float64(len(data))*float64(b.N)/1e6/reading.Seconds(), "read-MB/s")
	b.ReportMetric(float64(len(data))*float64(b.N)/1e6/tokens.Seconds(), "tokens-MB/s")
}

func BenchmarkDecoder(b *testing.B) {
	data := mondial(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		d := xtm.NewDecoder(bytes.NewReader(data), xtm.Options{Base: fuzzBase})
		for {
			_, err := d.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkWrite writes a real map, and reports how long that takes in terms of
// what reading the same map takes.
func BenchmarkWrite(b *testing.B) {
	data := mondial(b)
	var tm *tmdm.TopicMap
	reading := time.Hour
	for range 5 {
		start := testenv.CPUTime()
		var err error
		tm, err = xtm.Read(b.Context(), bytes.NewReader(data), xtm.Options{Base: fuzzBase})
		require.NoError(b, err)
		reading = min(reading, testenv.CPUTime()-start)
	}
	for _, v := range []xtm.Version{xtm.V10, xtm.V21} {
		b.Run("XTM"+string(v), func(b *testing.B) {
			var written counter
			b.ReportAllocs()
			start := testenv.CPUTime()
			for b.Loop() {
				if _, err := xtm.Write(&written, tm, xtm.WriteOptions{Version: v, Base: fuzzBase}); err != nil {
					b.Fatal(err)
				}
			}
			writing := testenv.CPUTime() - start
			b.ReportMetric(float64(written)/1e6/writing.Seconds(), "MB/cpu-s")
			b.ReportMetric(writing.Seconds()/float64(b.N)/reading.Seconds(), "×reading")
		})
	}
}

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
