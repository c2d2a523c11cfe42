package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// childDerive is the data folder of a child process that derives.
const childDerive = "TMSHARE_BENCH_CHILD_DERIVE"

// inputs is the number of inputs, and of reifiedOf topics one has a reified name.
const (
	inputs    = 3
	reifiedOf = 10
)

// The kinds of changes of an input that BenchmarkDerive measures.
const (
	changeName    = "name"    // a topic gets another name
	changeReified = "reified" // a topic whose name is reified gets another one besides
	changeNew     = "new"     // there is a new topic, with two identifiers
)

// BenchmarkDerive measures the cost of one change of an input in a derived collection, from the commit of the input to
// that of the derived collection. The three inputs have -topics each, or 1,000, in turn; all have the same subjects.
// The cost must depend on the change only, so the ratio of the medians must be near 1. Each collection is in a process
// of its own. It also reports the large one's peak of anonymous memory: it derives all topics first.
func BenchmarkDerive(b *testing.B) {
	large, small := newDeriving(b, mapSize()), newDeriving(b, 1000)
	kinds := []string{changeName, changeReified, changeNew}
	for b.Loop() {
		for range 20 * rounds() {
			for _, kind := range kinds {
				large.change(kind)
				small.change(kind)
			}
		}
	}
	peak := large.end()
	small.end()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(large.first.Seconds(), "s/first")
	for _, kind := range kinds {
		l, s := median(large.took[kind]), median(small.took[kind])
		b.ReportMetric(l.Seconds()*1000, "ms/"+kind)
		ratio(b, l.Seconds(), s.Seconds(), kind+"-of-1k-topics")
	}
	if peak > 0 { // /proc is available
		b.ReportMetric(peak/1e6, "peak-MB")
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// deriving is a process that keeps a derived collection.
type deriving struct {
	b     *testing.B
	lines *bufio.Scanner
	in    io.WriteCloser
	ended chan float64
	first time.Duration // the duration of deriving all
	took  map[string][]time.Duration
}

func newDeriving(b *testing.B, topics int) *deriving {
	folder := b.TempDir()
	publishInputs(b, folder, topics)
	d := &deriving{b: b, ended: make(chan float64, 1), took: map[string][]time.Duration{}}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDerive+"="+folder)
	cmd.Stderr = os.Stderr
	out, to, err := os.Pipe()
	require.NoError(b, err)
	cmd.Stdout = to
	d.in, err = cmd.StdinPipe()
	require.NoError(b, err)
	d.lines = bufio.NewScanner(out)
	go func() {
		peak, err := sampled(b, cmd)
		if to.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		d.ended <- peak
	}()
	b.Cleanup(func() { d.in.Close() })
	d.first = d.answer()
	return d
}

// publishInputs makes a data folder with the collections that are derived from.
func publishInputs(b *testing.B, folder string, topics int) {
	var doc bytes.Buffer
	require.NoError(b, synthetic.WriteReified(&doc, topics, reifiedOf))
	logger := slog.New(slog.DiscardHandler)
	db, err := store.Open(b.Context(), store.Options{Dir: folder, Indexes: ext.Indexes(), Logger: logger})
	require.NoError(b, err)
	defer func() { require.NoError(b, db.Close()) }()
	s, err := server.New(server.Config{Store: db, BaseURL: "http://127.0.0.1:1", Logger: logger, MaxBody: 4 << 30, Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
	require.NoError(b, err)
	defer s.Close()
	for i := range inputs {
		c := store.Collection{Name: inputName(i), SP: fmt.Sprintf("http://%d.example.org/", i)}
		_, err := s.Import(b.Context(), c, bytes.NewReader(doc.Bytes()), "the synthetic map")
		require.NoError(b, err)
	}
}

func inputName(i int) string { return fmt.Sprintf("input-%d", i) }

func (d *deriving) answer() (took time.Duration) {
	require.True(d.b, d.lines.Scan(), "the process that derives has ended")
	_, err := fmt.Sscan(d.lines.Text(), (*int64)(&took))
	require.NoError(d.b, err, d.lines.Text())
	return took
}

func (d *deriving) change(kind string) {
	_, err := fmt.Fprintln(d.in, kind)
	require.NoError(d.b, err)
	d.took[kind] = append(d.took[kind], d.answer())
}

// end ends the process and returns the peak of its memory.
func (d *deriving) end() float64 {
	require.NoError(d.b, d.in.Close())
	return <-d.ended
}

// deriveFolder is the work of the child process. It prints the duration of deriving all topics, and then of each
// requested change.
func deriveFolder(folder string) (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{Dir: folder, Indexes: ext.Indexes(), Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var from []string
	for i := range inputs {
		from = append(from, inputName(i))
	}
	if _, err := db.CreateCollection(ctx, store.Collection{Name: collection, SP: "http://derived.example.org/", DerivedFrom: from}, &merge.Memory{}, nil); err != nil {
		return err
	}
	c := &store.Collection{}
	catchUp := func() error {
		before, begin := c.Head, time.Now()
		if c, err = derive.CatchUp(ctx, db, collection); err != nil {
			return err
		}
		fmt.Println(int64(time.Since(begin)))
		if c.Head == before {
			return errors.New("a change of an input is not published")
		}
		return nil
	}
	if err := catchUp(); err != nil {
		return err
	}
	stop, err := profile(fmt.Sprintf(".derive-%d", os.Getpid()))
	if err != nil {
		return err
	}
	defer stop()
	n := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); n++ {
		if err := edit(ctx, db, inputName(n/3%inputs), lines.Text(), n/3%(1000/reifiedOf)); err != nil {
			return err
		}
		if err := catchUp(); err != nil {
			return err
		}
	}
	return nil
}

// edit changes an input. Each n below the number of topics that are not reified, or are, is another topic.
func edit(ctx context.Context, db *store.DB, name, kind string, n int) error {
	_, err := db.Publish(ctx, name, func(_ store.Collection, state merge.State) (*fragment.Change, error) {
		if kind == changeNew {
			t := fragment.Topic{Names: []fragment.Name{{Value: "New", Type: tmdm.PSIDefaultNameType}}}
			at := time.Now().UnixNano()
			t.SubjectIdentifiers = []fragment.Ref{fragment.Ref(fmt.Sprintf("%snew/%d", synthetic.Base, at)), fragment.Ref(fmt.Sprintf("%sother/%d", synthetic.Base, at))}
			return fragment.Exchange(state, nil, []*fragment.Topic{&t}, nil, nil)
		}
		i := n * reifiedOf
		if kind == changeName {
			i = n + n/(reifiedOf-1) + 1
		}
		old, err := state.Topic(fragment.Ref(fmt.Sprintf("%st/%d", synthetic.Base, i)))
		if err != nil || old == nil || old.HasReifiers() != (kind == changeReified) {
			return nil, errors.Join(err, fmt.Errorf("topic %d is not what was published: %v", i, old))
		}
		next := *old
		next.Names = slices.Clone(old.Names)
		for j := range next.Names {
			if strings.HasPrefix(next.Names[j].Value, "Thema") {
				next.Names[j].Value = fmt.Sprintf("Thema, change of %s", time.Now())
			}
		}
		next.Canonical()
		return fragment.Exchange(state, []*fragment.Topic{old}, []*fragment.Topic{&next}, nil, nil)
	})
	return err
}
