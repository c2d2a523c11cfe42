package bench_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// BenchmarkDisk measures the disk space of the data folder of a server after the first publication, and after as many
// changes as there are topics: each gets another name, a hundred with each POST. There is a snapshot of either state,
// and the server has ended. The references are the map as XTM 2.1, gzipped and plain.
//
// The rows are grouped by purpose, with their keys. The rest is added by Badger.
func BenchmarkDisk(b *testing.B) {
	c := synthesize(b, mapSize())
	document, err := os.ReadFile(c.file)
	require.NoError(b, err)
	batches, plain, gzipped := c.batches(b)
	for b.Loop() {
		folder := filepath.Join(b.TempDir(), "data")
		n := serve(b, folder)
		n.firstPut(document, c.topics)
		n.stop()
		first := bytesIn(b, folder)
		b.ReportMetric(rowsOf(b, folder)["log"]/float64(c.topics), "B-of-log/topic-at-first")
		n = serve(b, folder)
		for _, batch := range batches {
			_, answer := n.do("POST", "/topics", bytes.NewReader(batch), http.StatusOK)
			var p publish.Published
			require.NoError(b, json.Unmarshal(answer, &p))
			require.Equal(b, bytes.Count(batch, []byte(">Changed topic ")), p.Updated)
		}
		n.do("POST", "/snapshots", nil, http.StatusCreated)
		n.stop()
		all := bytesIn(b, folder)
		rows := rowsOf(b, folder)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(gzipped/1e6, "MB-of-map-gzipped")
		b.ReportMetric(all/1e6, "MB")
		b.ReportMetric(bytesIn(b, filepath.Join(folder, "snapshots"))/1e6, "MB-of-snapshots")
		for what, size := range rows {
			b.ReportMetric(size/1e6, "MB-of-"+what)
		}
		ratio(b, first, gzipped, "map-gzipped-at-first")
		ratio(b, all, gzipped, "map-gzipped")
		ratio(b, all, plain, "map")
	}
}

// batches returns documents that give other names to batchSize topics each, and the size of the map as XTM 2.1, plain
// and gzipped.
func (c *corpus) batches(b *testing.B) (all [][]byte, plainSize, gzippedSize float64) {
	tm := c.read(b)
	m, err := fragment.NameTopics(b.Context(), tm, synthetic.Base, nil)
	require.NoError(b, err)
	var batch bytes.Buffer
	for i := range mapSize() {
		if i%batchSize == 0 {
			batch.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
		}
		var one bytes.Buffer
		form := fragment.Form{Version: xtm.V21, SP: synthetic.Base, OmitInstances: true}
		require.NoError(b, fragment.Write(&one, m, fragment.Ref(fmt.Sprintf("%st/%d", synthetic.Base, i)), form))
		_, body, found := strings.Cut(one.String(), `version="2.1">`)
		require.True(b, found)
		batch.WriteString(strings.TrimSuffix(strings.TrimSpace(strings.Replace(body, ">Topic ", ">Changed topic ", 1)), "</topicMap>"))
		if i%batchSize == batchSize-1 || i == mapSize()-1 {
			batch.WriteString("</topicMap>")
			all = append(all, bytes.Clone(batch.Bytes()))
			batch.Reset()
		}
	}
	var packed, plain tally
	z := gzip.NewWriter(&packed)
	_, err = xtm.Write(io.MultiWriter(z, &plain), tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(synthetic.Base)})
	require.NoError(b, err)
	require.NoError(b, z.Close())
	return all, float64(plain), float64(packed)
}

// bytesIn returns the size of all files in a folder.
func bytesIn(b *testing.B, folder string) (size float64) {
	require.NoError(b, filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += float64(info.Size())
		}
		return err
	}))
	return size
}

// rowsOf returns the size in bytes of the rows of a data folder, by purpose.
func rowsOf(b *testing.B, folder string) map[string]float64 {
	engine := openEngine(b, folder)
	defer func() { require.NoError(b, engine.Close()) }()
	reader, err := engine.Snapshot(b.Context())
	require.NoError(b, err)
	defer reader.Close()
	sizes := map[string]float64{}
	for r, err := range reader.Range(nil, nil, false) {
		require.NoError(b, err)
		what := "other-rows"
		switch table := keys.Table(r.Key); {
		case table == keys.TableLog || table == keys.TableFirst || table == keys.TableKey:
			what = "log"
		case table == keys.TableFragment:
			what = "fragments"
		case strings.IndexByte(keys.SourceTables, table) >= 0:
			what = "records"
		}
		sizes[what] += float64(len(r.Key) + len(r.Value))
	}
	return sizes
}
