// Package client_test tests the client against real servers over real sockets.
package client_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	"github.com/tmshare/tmshare/tmdm"
)

// subscriber is a client on a store of its own.
type subscriber struct {
	*client.Client
	t   *testing.T
	dir string
	db  *store.DB

	mayDiffer bool // the copy may differ from the digest of the source

	mu     sync.Mutex
	report []string
}

func newSubscriber(t *testing.T, change ...func(*client.Config)) *subscriber {
	s := &subscriber{t: t, dir: t.TempDir()}
	s.open()
	t.Cleanup(func() { require.NoError(t, s.db.Close()) })
	s.configure(change...)
	return s
}

// merged is the merged view of the subscriber's sources.
func (s *subscriber) merged() merged.View {
	return merged.View{Store: s.db, Report: s.Client.Report}
}

// Merged returns the merged view of the named sources, or of all.
func (s *subscriber) Merged(ctx context.Context, claims bool, sources ...string) (*tmdm.TopicMap, int, error) {
	return s.merged().Map(ctx, claims, sources...)
}

// local are the subscriber's local statements.
func (s *subscriber) local() local.Statements { return local.Statements{Store: s.db} }

func (s *subscriber) open() {
	s.db = stores.Open(s.t, store.Options{Dir: s.dir, Logger: silent, Badger: node.Engine(s.t)})
}

// restart closes the store, opens it again and makes a new client.
func (s *subscriber) restart(change ...func(*client.Config)) {
	require.NoError(s.t, s.db.Close())
	s.open()
	s.configure(change...)
}

// configure makes a new client, as another run of the program would.
func (s *subscriber) configure(change ...func(*client.Config)) {
	config := client.Config{Formats: ext.Formats(), Protocols: ext.Protocols(), ConfirmAfter: followtest.ConfirmAfter, Store: s.db, Logger: silent, Backoff: time.Millisecond, Report: func(line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.report = append(s.report, line)
	}}
	for _, f := range change {
		f(&config)
	}
	c, err := client.New(config)
	require.NoError(s.t, err)
	c.LimitQueue(4000, 50)
	c.BelieveSoon()
	s.Client = c
}

// subscribed returns a subscriber of the collection egov of o.
func subscribed(t *testing.T, o *origin, change ...func(*client.Config)) *subscriber {
	s := newSubscriber(t, change...)
	_, err := s.Subscribe(context.Background(), o.URL+"/topicmaps/egov", client.SubscribeOptions{})
	require.NoError(t, err)
	return s
}

// singly has fragments fetched one by one, for tests of that.
func singly(c *client.Config) { c.NoBundles = true }

// inStep returns a subscriber of egov that has made its clean start.
func inStep(t *testing.T, o *origin, change ...func(*client.Config)) *subscriber {
	s := subscribed(t, o, change...)
	s.sync()
	o.Seen()
	return s
}

// sync does a round of egov that must succeed.
func (s *subscriber) sync() *client.Round {
	r, err := s.patiently("egov")
	require.NoError(s.t, err)
	if r.Quarantined == 0 && !s.mayDiffer {
		require.Empty(s.t, r.Unproven)
	}
	return r
}

// patiently does rounds until their losses are confirmed.
func (s *subscriber) patiently(name string) (r *client.Round, err error) {
	for range 8 {
		if r, err = s.Sync(context.Background(), name); !s.inDoubt(err) {
			break
		}
	}
	return r, err
}

// inDoubt reports whether a round has ended in doubt.
func (s *subscriber) inDoubt(err error) bool { return errors.As(err, new(*follow.DoubtError)) }

// syncPasses does a round of egov that passes over n topics, and returns the quarantine.
func (s *subscriber) syncPasses(n int) (*client.Round, []store.Quarantined) {
	r := s.sync()
	require.Equal(s.t, n, r.Quarantined)
	all, err := s.db.Quarantine(s.t.Context(), "egov")
	require.NoError(s.t, err)
	require.Len(s.t, all, n)
	return r, all
}

// syncFails does a round of egov that must fail.
func (s *subscriber) syncFails() (*client.Round, error) {
	r, err := s.patiently("egov")
	require.Error(s.t, err)
	return r, err
}

// known returns a subscription as in the store.
func (s *subscriber) known(name string) store.Subscription {
	all, err := s.db.Subscriptions(s.t.Context())
	require.NoError(s.t, err)
	for _, sub := range all {
		if sub.Name == name {
			return sub
		}
	}
	require.Fail(s.t, "no such subscription", name)
	return store.Subscription{}
}

// reported returns the messages of the client so far.
func (s *subscriber) reported() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.report, "\n")
}

// has asserts that the subscriber's egov is equal to a document as the server
// read it: item identifiers left out, the source locator prefix as the base.
func (s *subscriber) has(o *origin, doc string) {
	s.t.Helper()
	s.hasAs("egov", o.SP("egov"), doc)
}

func (s *subscriber) hasAs(name, sp, doc string) {
	s.t.Helper()
	tm, _, err := s.Merged(s.t.Context(), false, name)
	require.NoError(s.t, err)
	require.Equal(s.t, canonical(s.t, published(s.t, doc, sp), sp), canonical(s.t, tm, sp))
}

func (s *subscriber) canonicalOf(source, sp string) string {
	tm, _, err := s.Merged(s.t.Context(), false, source)
	require.NoError(s.t, err)
	return canonical(s.t, tm, sp)
}

// here returns the records of each source at the subscriber, including local statements.
func (s *subscriber) here() map[string]map[string]string {
	all := map[string]map[string]string{}
	require.NoError(s.t, s.db.ReadParts(s.t.Context(), func(parts []store.Part) error {
		for _, p := range parts {
			all[p.Name] = followtest.Contents(s.t, p.Source)
		}
		return nil
	}))
	return all
}

// Documents of a few topics, and their versions at servers.
var (
	doc, si, topic, topics, link = docs.Map, docs.SI, docs.Topic, docs.Topics, docs.Link
	published, canonical         = docs.Published, docs.Canonical
)

// vocabulary are the topics that link uses.
var vocabulary = strings.Join([]string{topic("near", "near"), topic("from", "from"), topic("to", "to")}, "\n")

// attribute returns the path in an attribute of the element that has a part.
func attribute(document, part, name string) string {
	for tag := range strings.SplitSeq(document, "<") {
		if strings.Contains(tag, part) {
			_, value, _ := strings.Cut(tag, name+`="`)
			value, _, _ = strings.Cut(value, `"`)
			if u, err := url.Parse(value); err == nil {
				return u.Path
			}
		}
	}
	return ""
}
