// Package demo is an extension: a command that walks through the whole system on example maps: publish, clean
// start, change, partial update, deletion, aggregation, proof of equality. All
// of it is real: a server on a loopback socket, stores on disk, HTTP.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// Options are the options of the demo.
type Options struct {
	Parts  []func(*server.Server) (*server.Part, error) // of the server
	Stores store.Options                                // options of their stores for extensions
	Out    io.Writer
	Listen string // address of the server, "127.0.0.1:0" for a free port
	Once   bool   // end after the walk instead of serving on
}

// Run runs the demo until it is done or, without Once, until ctx ends. It
// returns an error where the proof of equality fails.
func Run(ctx context.Context, o Options) (err error) {
	dir, err := os.MkdirTemp("", "tmshare-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{out: o.Out, dir: dir, kept: o.Stores}
	defer d.close()
	if err := d.start(ctx, o); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		d.publish, d.cleanStart, d.change, d.partialUpdate, d.aggregate, d.remove, d.prove,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if o.Once {
		return nil
	}
	d.head("Still serving")
	d.say("Look at %s/topicmaps in a feed reader or with curl; stop with Ctrl-C.", d.server.BaseURL)
	<-ctx.Done()
	return nil
}

type demo struct {
	out        io.Writer
	dir        string
	kept       store.Options // how stores are opened
	server     *server.Server
	http       *http.Server
	stores     []*store.DB
	subscriber node // of egov
	aggregator node // of both maps
	step       int
}

// node is a client with its merged view.
type node struct {
	*client.Client
	merged merged.View
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, "   "+format+"\n", args...) }

func (d *demo) head(title string) {
	d.step++
	fmt.Fprintf(d.out, "\n%d. %s\n", d.step, title)
}

func (d *demo) open(ctx context.Context, name string, log *slog.Logger) (*store.DB, error) {
	o := d.kept
	o.Dir, o.Logger = filepath.Join(d.dir, name), log
	db, err := store.Open(ctx, o)
	if err == nil {
		d.stores = append(d.stores, db)
	}
	return db, err
}

// start starts the server and makes the two clients.
func (d *demo) start(ctx context.Context, o Options) error {
	log := slog.New(slog.NewTextHandler(d.out, &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := d.open(ctx, "server", log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return err
	}
	d.server, err = server.New(server.Config{
		Parts: o.Parts,
		Store: db, BaseURL: "http://" + listener.Addr().String(), Logger: log,
		OnLoopback: listener.Addr().(*net.TCPAddr).IP.IsLoopback(),
	})
	if err != nil {
		listener.Close()
		return err
	}
	d.http = &http.Server{Handler: d.server, ReadHeaderTimeout: 10 * time.Second}
	go d.http.Serve(listener)
	for name, n := range map[string]*node{"subscriber": &d.subscriber, "aggregator": &d.aggregator} {
		db, err := d.open(ctx, name, log)
		if err != nil {
			return err
		}
		c, err := client.New(client.Config{Store: db, Logger: log})
		if err != nil {
			return err
		}
		*n = node{c, merged.View{Store: db, Report: c.Report}}
	}
	return nil
}

func (d *demo) close() {
	if d.http != nil {
		d.http.Close()
		d.server.Close()
	}
	for _, db := range d.stores {
		db.Close()
	}
}

func (d *demo) mapURL(name string) string { return d.server.BaseURL + "/topicmaps/" + name }

func (d *demo) publish(ctx context.Context) error {
	d.head("A server publishes two topic maps")
	for _, m := range []struct {
		name, title string
		doc         []byte
	}{{"egov", "Government services of Nordhavn", maps.EGov},
		{"libraries", "Public libraries of Nordhavn", maps.Libraries}} {
		c := store.Collection{Name: m.name, SP: server.DefaultPrefix(d.server.BaseURL, m.name),
			Settings: store.Settings{Title: m.title}}
		created, err := d.server.Import(ctx, c, bytes.NewReader(m.doc), m.name+".xtm")
		if err != nil {
			return err
		}
		d.say("%-10s %3d topics, each with an entry in the fragments feed, and a snapshot", m.name, created.Topics)
	}
	d.say("Feeds to look at:")
	for _, path := range []string{"", "/egov", "/egov/snapshots", "/egov/fragments"} {
		d.say("  %s/topicmaps%s", d.server.BaseURL, path)
	}
	return nil
}

func (d *demo) cleanStart(ctx context.Context) error {
	d.head("A client subscribes and starts clean from the newest snapshot")
	s, err := d.subscriber.Subscribe(ctx, d.mapURL("egov"), client.SubscribeOptions{})
	if err != nil {
		return err
	}
	d.say("tmshare-client subscribe %s", d.mapURL("egov"))
	d.say("The statements of this source begin with %s", s.SP)
	if err := d.sync(ctx, d.subscriber, "egov"); err != nil {
		return err
	}
	return d.verify(ctx, d.subscriber, "egov")
}

// change publishes an edited version of the map.
func (d *demo) change(ctx context.Context) error {
	d.head("The editors publish a new version of the whole map")
	sp := server.DefaultPrefix(d.server.BaseURL, "egov")
	tm, err := xtm.Read(ctx, bytes.NewReader(maps.EGov), xtm.Options{Base: tmdm.Locator(sp), URI: "egov.xtm"})
	if err != nil {
		return err
	}
	const psi = "https://psi.egov.example.org/"
	renewal := tm.CreateTopicBySubjectIdentifier(psi + "service/passport-renewal")
	renewal.AddName("Renovación del pasaporte", nil,
		tm.CreateTopicBySubjectIdentifier("http://www.topicmaps.org/xtm/1.0/language.xtm#es"))
	booking := tm.CreateTopicBySubjectIdentifier(psi + "service/appointment-booking")
	booking.AddName("Booking an appointment", nil)
	for class := range renewal.Types() {
		booking.AddType(class)
		break
	}
	d.say("Two edits: a Spanish name for passport renewal, and a new service.")
	var doc bytes.Buffer
	if _, err := xtm.Write(&doc, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(sp)}); err != nil {
		return err
	}
	for _, what := range []string{"curl -X PUT --data-binary @new.xtm " + d.mapURL("egov"), "The same file again:"} {
		p, err := d.request(ctx, http.MethodPut, d.mapURL("egov"), doc.Bytes())
		if err != nil {
			return err
		}
		d.say("%s", what)
		d.say("  %d added, %d updated, %d deleted", p.Added, p.Updated, p.Deleted)
	}
	return nil
}

func (d *demo) partialUpdate(ctx context.Context) error {
	d.head("The client fetches only what has changed")
	if err := d.sync(ctx, d.subscriber, "egov"); err != nil {
		return err
	}
	return d.verify(ctx, d.subscriber, "egov")
}

func (d *demo) aggregate(ctx context.Context) error {
	d.head("An aggregator merges both maps, and keeps their sources apart")
	total := 0
	for _, name := range []string{"egov", "libraries"} {
		if _, err := d.aggregator.Subscribe(ctx, d.mapURL(name)+"/fragments", client.SubscribeOptions{}); err != nil {
			return err
		}
		if err := d.sync(ctx, d.aggregator, name); err != nil {
			return err
		}
		tm, _, err := d.aggregator.merged.Map(ctx, false, name)
		if err != nil {
			return err
		}
		total += count(tm)
	}
	tm, _, err := d.aggregator.merged.Map(ctx, false)
	if err != nil {
		return err
	}
	d.say("%d topics in the two sources are %d in the merged view: %d subjects are in both", total, count(tm),
		total-count(tm))
	if card := tm.TopicBySubjectIdentifier("https://psi.egov.example.org/service/library-card"); card != nil {
		d.say("One of them, the library card, has %d names, %d occurrences and plays %d roles there", len(card.Names()),
			len(card.Occurrences()), len(card.RolesPlayed()))
	}
	return nil
}

func count(tm *tmdm.TopicMap) (n int) {
	for range tm.Topics() {
		n++
	}
	return n
}

func (d *demo) remove(ctx context.Context) error {
	d.head("A topic is deleted: the server publishes an empty topic")
	const si = "https://psi.egov.example.org/service/dog-licence"
	ref := d.mapURL("egov") + "/topics/" + fragment.Key(si)
	p, err := d.request(ctx, http.MethodDelete, ref, nil)
	if err != nil {
		return err
	}
	d.say("curl -X DELETE %s", ref)
	d.say("  %d deleted, %d topics updated that were associated with it", p.Deleted, p.Updated)
	for _, c := range []node{d.subscriber, d.aggregator} {
		if err := d.sync(ctx, c, "egov"); err != nil {
			return err
		}
		tm, _, err := c.merged.Map(ctx, false)
		if err != nil {
			return err
		}
		if tm.TopicBySubjectIdentifier(si) != nil {
			return fmt.Errorf("the deleted topic %s is still there", si)
		}
	}
	d.say("It is gone at the client and at the aggregator.")
	return nil
}

// prove verifies every source, and compares the merged view with a merge of the server's maps.
func (d *demo) prove(ctx context.Context) error {
	d.head("Proof of equality")
	if err := d.verify(ctx, d.subscriber, "egov"); err != nil {
		return err
	}
	for _, name := range []string{"egov", "libraries"} {
		if err := d.verify(ctx, d.aggregator, name); err != nil {
			return err
		}
	}
	var canonical [2]bytes.Buffer
	mine, _, err := d.aggregator.merged.Map(ctx, false)
	if err != nil {
		return err
	}
	theirs, err := d.mergedAtServer(ctx)
	if err != nil {
		return err
	}
	for i, tm := range []*tmdm.TopicMap{mine, theirs} {
		if err := cxtm.Write(&canonical[i], tm, cxtm.Options{OmitItemIdentifiers: true}); err != nil {
			return err
		}
	}
	if !bytes.Equal(canonical[0].Bytes(), canonical[1].Bytes()) {
		return fmt.Errorf("the merged view differs from the merge of the server's maps")
	}
	d.say("The aggregator's merged view equals the merge of the server's two maps: %d topics, %d bytes of CXTM",
		count(mine), canonical[0].Len())
	return nil
}

func (d *demo) sync(ctx context.Context, c node, name string) error {
	r, err := c.Sync(ctx, name)
	if err != nil {
		return err
	}
	from := ""
	if r.CleanStart {
		from = "loaded from a snapshot, "
	}
	d.say("%s: %s%d entries since, %d fragments applied, in step as of %s", name, from, r.Entries, r.Applied,
		feeds.FormatTime(r.Mark))
	return nil
}

func (d *demo) verify(ctx context.Context, c node, name string) error {
	v, err := c.Verify(ctx, name, false)
	if err != nil {
		return err
	}
	if !v.Equal {
		return fmt.Errorf("%s differs from the server's map in %d topics", name, len(v.Differences))
	}
	d.say("%s: equal to the server's map, state digest %.16s…", name, v.Digest)
	return nil
}

func (d *demo) request(ctx context.Context, method, url string, body []byte) (*publish.Published, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, res.Status, answer)
	}
	var p publish.Published
	return &p, json.Unmarshal(answer, &p)
}
