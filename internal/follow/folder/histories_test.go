package folder

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/atompmh"
	"github.com/tmshare/tmshare/internal/testenv"
)

// inProcess answers requests by a handler, without sockets, as a server would.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (res *http.Response, err error) {
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
	}()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res = w.Result()
	res.Request = r
	if n, err := strconv.Atoi(res.Header.Get("Content-Length")); err == nil && n > w.Body.Len() {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(res.Body, failing{}), res.Body}
	}
	return res, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Whatever happens to the records of a producer, and to the form in which it publishes
// them, a folder holds them byte for byte after a round in which nothing happens: also after
// rounds in which something did, and in which the producer did not work.
//
//	go test ./internal/follow/folder -run Histories -rounds 10000
func TestHistories(t *testing.T) {
	dir := t.TempDir()
	n := 0
	testenv.Check(t, 25, 200, func(t *rapid.T) {
		n++
		p := newProducer(rapid.Uint64().Draw(t, "seed"))
		own := filepath.Join(dir, strconv.Itoa(n))
		defer os.RemoveAll(own)
		f := follower{t: t, dir: own, producer: p}
		f.options.Fetcher = fetch.Fetcher{
			HTTP: &http.Client{Transport: inProcess{p}}, Tries: 2, Backoff: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		}.WithDefaults()
		f.options.Formats = rapid.SampledFrom([][]string{nil, {"application/json", "application/xml"}, {"text/html"}}).Draw(t, "formats")
		f.options.Parallel = rapid.IntRange(1, 3).Draw(t, "parallel")
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for range rapid.IntRange(0, 4).Draw(t, "events") {
				p.event(true, &f.mark)
			}
			switch rapid.IntRange(0, 5).Draw(t, "round") {
			case 0:
				p.events = 3
				f.round()
				p.events = 0
			case 1:
				p.lying = true
				f.round()
				f.round()
				p.lying = false
			case 2:
				f.restore(rapid.IntRange(1, 6).Draw(t, "lost"))
			}
			f.equal()
		}
	})
}

// follower is a folder that follows a producer.
type follower struct {
	t        *rapid.T
	dir      string
	producer *producer
	options  Options
	mark     follow.Mark
}

func (f *follower) round() (*Round, error) {
	folder, err := Open(f.dir, f.options)
	require.NoError(f.t, err)
	folder.durable = false
	r, err := folder.Harvest(context.Background(), &atompmh.Source{Fetcher: f.options.Fetcher}, feedURL)
	f.mark = folder.state.Mark
	require.NoError(f.t, folder.Close())
	left, globbed := filepath.Glob(filepath.Join(f.dir, follow.OwnPrefix+"-*"))
	require.NoError(f.t, globbed)
	require.Empty(f.t, left)
	return r, err
}

// equal does a round in which nothing happens, and requires the folder to hold the pool.
func (f *follower) equal() {
	r, err := f.round()
	for err != nil && strings.Contains(err.Error(), "no entries any more") { // a feed that is empty all of a sudden is not believed
		f.producer.begin() // so its owner must say that it is another one
		f.producer.publish()
		r, err = f.round()
	}
	require.NoError(f.t, err)
	require.Empty(f.t, r.Failed)
	require.Empty(f.t, r.Gone)
	c := copyOf{t: f.t, dir: f.dir}
	require.Equal(f.t, f.producer.wanted(f.options.Formats), c.records())
}

// restore lets some things happen, has them harvested, and undoes them: the producer is
// restored from a backup, and its feed goes on from before the mark, under the same id.
func (f *follower) restore(events int) {
	p := f.producer
	saved := p.backup()
	for range events {
		p.event(true, &f.mark)
	}
	f.equal()
	saved()
}
