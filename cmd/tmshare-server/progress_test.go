package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgressIsShownNowAndThen(t *testing.T) {
	var shown bytes.Buffer
	now := time.Unix(0, 0)
	file := bytes.Repeat([]byte("x"), 9<<20)
	p := &progress{r: bytes.NewReader(file), to: &shown, name: "map.xtm", size: 9 << 20, now: func() time.Time {
		now = now.Add(50 * time.Millisecond)
		return now
	}}
	for {
		n, err := p.Read(make([]byte, 1<<20))
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Equal(t, 1<<20, n)
	}
	assert.Equal(t, "\r\x1b[Kmap.xtm: 1 of 9 MB\r\x1b[Kmap.xtm: 5 of 9 MB\r\x1b[Kmap.xtm: 9 of 9 MB"+
		"\r\x1b[Kmap.xtm: 9 MB sent, the server is working on it\n", shown.String())
}

func TestProgressPassesOnWhatItReads(t *testing.T) {
	p := &progress{r: bytes.NewReader([]byte("content")), to: io.Discard, now: time.Now}
	assert.NoError(t, iotest.TestReader(p, []byte("content")))
}

func TestTheNullDeviceIsNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	assert.False(t, isTerminal(null))
	file, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, isTerminal(file))
}

// Where there is no terminal, a line now and then says that an import goes on.
func TestImportReportsWithoutATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	done := reportWaiting(w, "map.xtm", time.Millisecond, func() int64 { return 2_500_000 })
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "map.xtm: 2.5 MB sent, waiting for the server\n", line)
	done()
	require.NoError(t, w.Close())
	require.NoError(t, r.Close())
}
