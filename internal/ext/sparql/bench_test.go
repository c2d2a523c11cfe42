package sparql

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/consumed"
)

// noting notes the updates that are sent.
type noting struct {
	http.RoundTripper
	sent []string
}

func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Content-Type") == "application/sparql-update" && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		n.sent = append(n.sent, string(text))
	}
	return n.RoundTripper.RoundTrip(r)
}

// BenchmarkTarget measures how long it takes until 10,000 changed topics are in Virtuoso. The reference is curl, which
// sends the same updates from files, into another graph that has the same.
func BenchmarkTarget(b *testing.B) {
	curl := testenv.Command(b, "curl")
	v := newVirtuoso(b)
	db := consumed.OpenStore(b)
	src := consumed.NewCollection(b, db)
	k := addTarget(b, db, &Target{Update: v.URL + "/sparql-auth", Query: v.URL + "/sparql-auth", PasswordFile: v.password()})
	notes := &noting{RoundTripper: k.store.fetcher.HTTP.Transport}
	k.store.fetcher.HTTP.Transport = notes
	const n = 10_000
	send := func() time.Duration {
		dir, began := b.TempDir(), time.Duration(0)
		for i, text := range notes.sent {
			file := filepath.Join(dir, fmt.Sprint(i))
			require.NoError(b, os.WriteFile(file, []byte(strings.ReplaceAll(text, "<"+graph+">", "<"+graph+"/curl>")), 0o600))
			start := time.Now()
			out, err := exec.Command(curl, "-sS", "--fail", "--digest", "-u", "dba:dba", "-H",
				"Content-Type: application/sparql-update", "--data-binary", "@"+file, v.URL+"/sparql-auth").CombinedOutput()
			began += time.Since(start)
			require.NoError(b, err, "%s", out)
		}
		notes.sent = nil
		return began
	}
	var ours, theirs time.Duration
	for i := 0; i < 2 || b.Loop(); i++ {
		var all []any
		for topic := range n {
			all = append(all, about(storetest.Ref(topic), fmt.Sprint("version ", i), fmt.Sprint("note ", i)))
		}
		src.Publish(b, published(b, memoryOf(b, all...)))
		began := time.Now()
		_, err := k.step(b.Context())
		require.NoError(b, err)
		took := time.Since(began)
		reference := send()
		if i > 0 { // the first load is compared in ranges
			ours, theirs = ours+took, theirs+reference
		}
	}
	b.ReportMetric(ours.Seconds(), "clock-s")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "×clock-of-curl")
}

// BenchmarkLargeTarget measures a target of a million statements: its first load, a comparison of the whole graph, and a
// change of one topic, and by how much the memory of this process grows meanwhile.
func BenchmarkLargeTarget(b *testing.B) {
	topics := 100_000
	if testing.Short() {
		topics = 1_000
	}
	for name, open := range map[string]func(testing.TB) *Target{
		"oxigraph": func(t testing.TB) *Target {
			at := oxigraph(t)
			return &Target{Update: at + "/update", Query: at + "/query"}
		},
		"virtuoso": func(t testing.TB) *Target {
			v := newVirtuoso(t)
			return &Target{Update: v.URL + "/sparql-auth", Query: v.URL + "/sparql-auth", PasswordFile: v.password()}
		},
	} {
		b.Run(name, func(b *testing.B) {
			db := consumed.OpenStore(b)
			src := consumed.NewCollection(b, db)
			k := addTarget(b, db, open(b))
			put := func(from, to int, note string) {
				for ; from < to; from += 1000 {
					src.Publish(b, func(fragment.Source) *fragment.Change {
						c := &fragment.Change{}
						for i := from; i < min(from+1000, to); i++ {
							c.PutTopics = append(c.PutTopics, about(storetest.Ref(i), note, "2", "3", "4", "5", "6", "7", "8", "9"))
							c.Entries = append(c.Entries, fragment.Entry{TopicSI: storetest.Ref(i), Topic: storetest.Ref(i)})
						}
						return c
					})
				}
			}
			measured := func(unit string, f func() error) {
				runtime.GC()
				var before, now runtime.MemStats
				runtime.ReadMemStats(&before)
				done, ended, most := make(chan bool), make(chan bool), uint64(0)
				go func() {
					defer close(ended)
					for {
						select {
						case <-done:
							return
						case <-time.After(100 * time.Millisecond):
							runtime.ReadMemStats(&now)
							most = max(most, now.HeapAlloc)
						}
					}
				}()
				began := time.Now()
				err := f()
				took := time.Since(began)
				close(done)
				<-ended
				require.NoError(b, err)
				b.ReportMetric(took.Seconds(), unit+"-s")
				b.ReportMetric(float64(max(most, before.HeapAlloc)-before.HeapAlloc)/(1<<20), unit+"-MB")
			}
			step := func() error {
				_, err := k.step(b.Context())
				return err
			}
			for b.Loop() {
				put(0, topics, "one")
				measured("load", step)
				measured("verify", func() error {
					result, err := k.compareNow(b.Context(), false)
					if err == nil {
						require.True(b, result.Equal())
						require.GreaterOrEqual(b, result.Statements, 10*topics)
					}
					return err
				})
				put(topics/2, topics/2+1, "changed")
				measured("change", step)
			}
		})
	}
}
