package bench_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// corpus is a map in a file, with the properties measured so far. Each is measured once, when a benchmark needs it, so
// each benchmark can be run alone.
type corpus struct {
	file       string
	size       float64 // of the file, in bytes
	topics     int     // of the map
	ontopia    float64 // bytes of heap per topic in Ontopia, if known for such a map
	references [3]reference

	elements       int64          // 0: not counted
	clockOfXmllint time.Duration  // 0: not measured
	load           time.Duration  // 0: not measured
	loaded         *tmdm.TopicMap // nil: not loaded
}

// ontopiaHeap is the memory that Ontopia takes for each topic of a map of the
// shape of bench/synthetic with 100,000 topics, on JDK 17. It is the only
// reference that is not measured in the same run.
const ontopiaHeap = 3694

// implied is the number of topics that maps use implicitly: the types of names and of type-instance associations, and
// the two role types of these.
const implied = 4

func synthesize(b *testing.B, n int) *corpus {
	c := inFile(b, func(w io.Writer) error { return synthetic.Write(w, n) })
	c.topics, c.ontopia = n+synthetic.Vocabulary+implied, ontopiaHeap
	return c
}

func mondial(b *testing.B) *corpus {
	defer func() {
		if b.Skipped() { // go test shows the reason only with -v
			fmt.Println("NOT CHECKED: no real map: there is no shared/data/mondial.xtm.gz in any folder above")
		}
	}()
	packed, err := os.Open(testenv.Shared(b, "data/mondial.xtm.gz"))
	require.NoError(b, err)
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	require.NoError(b, err)
	c := inFile(b, func(w io.Writer) error {
		_, err := io.Copy(w, z)
		return err
	})
	c.topics = 5976
	return c
}

// inFile makes a corpus of the output of write. It is a file for other programs.
func inFile(b *testing.B, write func(io.Writer) error) *corpus {
	c := &corpus{file: filepath.Join(b.TempDir(), "map.xtm")}
	f, err := os.Create(c.file)
	require.NoError(b, err)
	require.NoError(b, write(f))
	info, err := f.Stat()
	require.NoError(b, err)
	require.NoError(b, f.Close())
	c.size = float64(info.Size())
	c.references = [3]reference{
		{name: "JDK-SAX", measure: saxOfJDK},
		{name: "xmllint", measure: xmllint},
		{name: "RawToken", measure: rawToken},
	}
	return c
}

func (c *corpus) open(b *testing.B) *os.File {
	f, err := os.Open(c.file)
	require.NoError(b, err)
	return f
}

// read loads the map.
func (c *corpus) read(b *testing.B) *tmdm.TopicMap {
	f := c.open(b)
	defer f.Close()
	tm, err := xtm.Read(b.Context(), f, xtm.Options{Base: synthetic.Base})
	require.NoError(b, err)
	return tm
}

// inMemory returns the map, loaded. What loading takes is measured before the
// map is kept.
func (c *corpus) inMemory(b *testing.B) *tmdm.TopicMap {
	c.loadTime(b)
	if c.loaded == nil {
		c.loaded = c.read(b)
	}
	return c.loaded
}

// loadTime returns the time that loading takes, the reference of all that writes.
func (c *corpus) loadTime(b *testing.B) time.Duration {
	if c.load == 0 {
		c.load = best(rounds(), func() { c.read(b) })
	}
	return c.load
}

// sameElements fails unless all readers of the file have found the same number of elements.
func (c *corpus) sameElements(b *testing.B, n int64) {
	require.Positive(b, n)
	if c.elements == 0 {
		c.elements = n
	}
	require.Equal(b, c.elements, n, "elements in the file")
}
