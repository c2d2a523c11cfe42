package files_test

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/files/filestest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// BenchmarkStores writes a file of 64 MB, reads it as a whole and at random, and removes it. Processor time is that of
// this process; space is the size on disk relative to the file.
func BenchmarkStores(b *testing.B) {
	const size = 64_000_000
	content := filestest.Content(1, size)
	kinds := map[string]func(b *testing.B) (s files.Store, dir string){
		"folder": func(b *testing.B) (files.Store, string) { dir := b.TempDir(); return files.Folder(dir), dir },
		"badger": func(b *testing.B) (files.Store, string) {
			dir := b.TempDir()
			f, err := badger.Lock(dir, false)
			require.NoError(b, err)
			e, err := f.Open(badger.Options{Node: uuid.Nil})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, e.Close()) })
			return files.Rows{Engine: e, Now: time.Now}, dir
		},
		"postgres": func(b *testing.B) (files.Store, string) {
			s := pgserver.Start(b)
			return files.Rows{Engine: pgserver.Open(b, s.Store(b)), Now: time.Now}, s.Dir()
		},
	}
	for _, kind := range []string{"folder", "badger", "postgres"} {
		for _, chunk := range []int64{32 << 10, 256 << 10, 2 << 20} {
			if kind == "folder" && chunk != 256<<10 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%dK", kind, chunk>>10), func(b *testing.B) {
				defer files.SetChunkSize(chunk)()
				s, dir := kinds[kind](b)
				before := space(b, dir)
				var writing, reading, range1, cpu time.Duration
				for n := range b.N {
					name := fmt.Sprint("snapshots/a/", n)
					begun, used := time.Now(), testenv.CPUTime()
					require.NoError(b, filestest.Write(b.Context(), s, name, content))
					writing += time.Since(begun)
					begun = time.Now()
					f, err := s.Open(b.Context(), name)
					require.NoError(b, err)
					read, err := io.Copy(io.Discard, struct{ io.Reader }{f})
					require.NoError(b, err)
					require.EqualValues(b, size, read)
					reading += time.Since(begun)
					cpu += testenv.CPUTime() - used
					begun = time.Now()
					rng, part := testenv.Rand(1), make([]byte, 1000)
					for range 100 {
						f, err := s.Open(b.Context(), name)
						require.NoError(b, err)
						_, err = f.ReadAt(part, rng.Int64N(size-1000))
						require.NoError(b, err)
						require.NoError(b, f.Close())
					}
					range1 += time.Since(begun)
					require.NoError(b, f.Close())
				}
				mb := float64(size) * float64(b.N) / 1e6
				b.ReportMetric(mb/writing.Seconds(), "MB/s-written")
				b.ReportMetric(mb/reading.Seconds(), "MB/s-read")
				b.ReportMetric(range1.Seconds()*1e6/100/float64(b.N), "µs/range")
				b.ReportMetric(float64(cpu.Milliseconds())/mb, "cpu-ms/MB")
				b.ReportMetric(float64(space(b, dir)-before)/1e6/mb, "space/size")
			})
		}
	}
}

// space returns the size in bytes of the files in a folder.
func space(b *testing.B, dir string) (bytes int64) {
	require.NoError(b, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it may have been removed
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	}))
	return bytes
}
