package hub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/resources"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/hub"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/internal/testkit/node"
)

// notification is what a hub was sent.
type notification struct {
	topic string // of its Link header
	head  resourcesync.Document
	items []resourcesync.Item
	body  []byte
}

// notifiedHub is a hub of Change Notification: it passes on what it is sent to its subscribers, in its order, and keeps it.
type notifiedHub struct {
	*httptest.Server
	moods
	all         []notification
	subscribers []func(notification)
}

func newNotifiedHub(t *testing.T) *notifiedHub {
	h := &notifiedHub{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *notifiedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if h.answered(w, r) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.take(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.all = append(h.all, n)
	for _, s := range h.subscribers {
		s(n)
	}
	w.WriteHeader(http.StatusNoContent)
}

// take reads a notification as a hub does that trusts nobody.
func (h *notifiedHub) take(r *http.Request, body []byte) (n notification, err error) {
	n.body = body
	links := r.Header.Get("Link")
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/xml" || !isOurs(r) || len(r.Header.Values("Link")) != 1 || !strings.HasPrefix(links, "<"+h.URL+`>; rel="hub", `) {
		return n, fmt.Errorf("what is this? %s %v", r.Method, r.Header)
	}
	_, self, _ := strings.Cut(links, `rel="hub", <`)
	n.topic, _, _ = strings.Cut(self, `>; rel="self"`)
	d, err := resourcesync.Read(bytes.NewReader(body), n.topic, resourcesync.Limits{})
	if err != nil {
		return n, err
	}
	for {
		item, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
	n.head = d.Document
	return n, nil
}

func (h *notifiedHub) failing(status int) {
	h.answering(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true })
}

// sent returns what the hub has taken.
func (h *notifiedHub) sent() []notification {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]notification(nil), h.all...)
}

// destination holds the resources that it is told of, as their hashes.
type destination struct {
	mu   sync.Mutex
	held map[string]string
}

func (d *destination) told(n notification) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range n.items {
		if item.Change == resourcesync.Deleted {
			delete(d.held, item.Loc)
		} else {
			d.held[item.Loc] = item.Hashes[len(item.Hashes)-1].Digest
		}
	}
}

// served returns the hashes of what a server serves.
func served(o *node.Origin, name string) map[string]string {
	served := map[string]string{}
	site := siteOf(o, &store.Collection{Name: name})
	assert.NoError(o.T, o.DB.View(context.Background(), name, func(v *store.View) error {
		for e, err := range v.Records() {
			if err != nil {
				return err
			}
			url := site.Map + "/topics/" + fragment.Key(e.TopicSI)
			a, err := http.Get(url)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(a.Body)
			a.Body.Close()
			if err != nil {
				return err
			}
			sum := sha256.Sum256(body)
			served[url] = hex.EncodeToString(sum[:])
		}
		return nil
	}))
	return served
}

// holds reports whether the destination holds just this.
func (d *destination) holds(resources map[string]string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return assert.ObjectsAreEqual(resources, d.held)
}

func siteOf(o *node.Origin, c *store.Collection) *resources.Site {
	return &resources.Site{Server: o.URL, Map: o.URL + "/topicmaps/" + c.Name, Epoch: c.Epoch}
}

// notifying runs a notifier for the collections of a server until the end of the test, or until stop is called.
func notifying(t *testing.T, o *node.Origin, change func(*hub.Notifier), hubs ...*notifiedHub) (n *hub.Notifier, said *log, stop func()) {
	said = &log{}
	n = &hub.Notifier{
		Store: o.DB, Every: 5 * time.Millisecond, Backoff: time.Millisecond, Pause: 20 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(said, nil)), File: filepath.Join(o.DB.Dir(), "notified.json"),
	}
	for _, h := range hubs {
		n.Hubs = append(n.Hubs, h.URL)
	}
	n.Site = func(c *store.Collection) *resources.Site {
		site := siteOf(o, c)
		site.Hubs = n.Hubs
		return site
	}
	if change != nil {
		change(n)
	}
	n = hub.NewNotifier(n)
	return n, said, running(t, n.Run)
}

// counted returns how many changes had a result.
func counted(t *testing.T, n *hub.Notifier, h *notifiedHub, result string) int {
	t.Helper()
	return counterOf(t, n.Collector(), h.URL, result)
}

// begun waits until it is known where each of the hubs begins.
func begun(t *testing.T, o *node.Origin, hubs ...*notifiedHub) {
	for _, h := range hubs {
		testenv.Eventually(t, func() bool {
			b, _ := os.ReadFile(filepath.Join(o.DB.Dir(), "notified.json"))
			return bytes.Contains(b, []byte(h.URL))
		}, "the begin")
	}
}

// subscribed is a destination that begins with what is there, told by a hub.
func subscribed(h *notifiedHub, held map[string]string) *destination {
	d := &destination{held: held}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = append(h.subscribers, d.told)
	return d
}

// assertFollow asserts that notifications of a topic are whole, and follow each other. It returns the number of gaps between them.
func assertFollow(t *testing.T, topic string, all []notification) (gaps int) {
	t.Helper()
	var until time.Time
	for i, n := range all {
		assert.Equal(t, topic, n.topic)
		assert.Equal(t, resourcesync.ChangeNotification, n.head.Capability)
		up, _ := n.head.Link(resourcesync.RelUp)
		assert.Equal(t, strings.TrimSuffix(topic, "notifications")+"capabilitylist.xml", up.Href)
		self, _ := n.head.Link(resourcesync.RelSelf)
		assert.Equal(t, topic, self.Href)
		assert.NotEmpty(t, n.head.Find(resourcesync.RelHub))
		assert.False(t, n.head.From.Before(until), "notification %d", i)
		if i > 0 && n.head.From.After(until) {
			gaps++
		}
		last := n.head.From
		for _, item := range n.items {
			assert.True(t, last.Before(item.Datetime), "the order of changes")
			assert.Equal(t, item.LastMod, item.Datetime)
			if last = item.Datetime; item.Change == resourcesync.Updated {
				assert.Len(t, item.Hashes, 2)
				assert.NotZero(t, item.Length)
				assert.NotEmpty(t, item.Type)
			}
		}
		until = n.head.Until
		assert.Equal(t, last, until)
	}
	return gaps
}

// Whoever applies the notifications that a hub passes on has what the server has.
func TestDestinationsFollowByNotifications(t *testing.T) {
	t.Parallel()
	h := newNotifiedHub(t)
	o := node.Publishing(t, version(0))
	notifying(t, o, func(n *hub.Notifier) { n.Most = 4 }, h)
	begun(t, o, h)
	d := subscribed(h, served(o, "egov"))
	topic := siteOf(o, &store.Collection{Name: "egov"}).NotificationsURL()
	for i := range 12 {
		o.Put(docs.Of(append(docs.Topics(3+i%3, fmt.Sprint("v", i/2)), docs.Topic("once"+fmt.Sprint(i), "x"), docs.Link("knows", "t0", "t1"))...))
	}
	testenv.Eventually(t, func() bool { return d.holds(served(o, "egov")) }, "the destination has all")
	all := h.sent()
	assert.Zero(t, assertFollow(t, topic, all))
	kinds := map[resourcesync.Change]int{}
	for _, n := range all {
		assert.LessOrEqual(t, len(n.items), 4)
		for _, item := range n.items {
			kinds[item.Change]++
		}
	}
	assert.Len(t, kinds, 3, "%v", kinds)

	folder, xmllint := testenv.Shared(t, "schemas/resourcesync"), testenv.Command(t, "xmllint")
	for i, n := range all {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i))
		require.NoError(t, os.WriteFile(file, n.body, 0o600))
		out, err := exec.Command(xmllint, "--noout", "--nonet", "--schema", filepath.Join(folder, "joint-sitemap11.xsd"), file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// A hub learns of nothing that was before it was given, and after a restart of all that it lacks, once and in order.
func TestNotificationsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	h := newNotifiedHub(t)
	o := node.Publishing(t, version(0))
	n, _, stop := notifying(t, o, nil, h)
	begun(t, o, h)
	o.Put(version(1))
	testenv.Eventually(t, func() bool { return counted(t, n, h, "sent") == 3 }, "the first change")
	stop()
	o.Put(version(2))
	o.Put(version(3))
	o.Create("other", version(0))
	o.Stop()
	o.Start(o.Dir)
	n, _, stop = notifying(t, o, nil, h)
	testenv.Eventually(t, func() bool { return counted(t, n, h, "sent") == 10 }, "what was missed")
	o.Put(version(4))
	testenv.Eventually(t, func() bool { return counted(t, n, h, "sent") == 13 }, "what is new")
	stop()
	of := map[string][]notification{}
	for _, one := range h.sent() {
		of[one.topic] = append(of[one.topic], one)
	}
	require.Len(t, of, 2)
	for topic, all := range of {
		assert.Zero(t, assertFollow(t, topic, all))
	}
}

// The process may be killed between the hub's answer and the note of it: then the hub is told again.
func TestNotificationsAreSentAgainWhereNobodyKnows(t *testing.T) {
	t.Parallel()
	h := newNotifiedHub(t)
	o := node.Publishing(t, version(0))
	_, _, stop := notifying(t, o, nil, h)
	begun(t, o, h)
	stop()
	file := filepath.Join(o.DB.Dir(), "notified.json")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	o.Put(version(1))
	for i := range 2 {
		require.NoError(t, os.WriteFile(file, before, 0o600))
		n, _, stop := notifying(t, o, nil, h)
		testenv.Eventually(t, func() bool { return counted(t, n, h, "sent") == 3 }, "round %d", i)
		stop()
	}
	all := h.sent()
	require.Len(t, all, 2)
	assert.Equal(t, all[0].body, all[1].body)
}

// A hub that is dead delays neither the other hub nor commits. When it is back, it is told of all that it lacks.
func TestNotificationsToADeadHub(t *testing.T) {
	t.Parallel()
	dead, alive := newNotifiedHub(t), newNotifiedHub(t)
	dead.failing(http.StatusBadGateway)
	o := node.Publishing(t, version(0))
	n, said, _ := notifying(t, o, nil, dead, alive)
	begun(t, o, dead, alive)
	for i := range 3 {
		o.Put(version(i + 1))
		testenv.Eventually(t, func() bool { return counted(t, n, alive, "sent") == 3*(i+1) }, "the other hub")
	}
	testenv.Eventually(t, func() bool { return dead.tried() > 10 }, "several rounds of five tries")
	assert.Contains(t, said.String(), "Check that the hub runs, and that --notification-hub is its address")
	assert.Zero(t, counted(t, n, dead, "sent"))
	dead.answering(nil)
	testenv.Eventually(t, func() bool { return counted(t, n, dead, "sent") == 9 }, "the hub is back")
	assert.Zero(t, assertFollow(t, dead.sent()[0].topic, dead.sent()))
	assert.Zero(t, counted(t, n, dead, "refused")+counted(t, n, dead, "left_out"))
}

// A hub that does not answer in time is one that fails. Of what it lacks, the oldest is left out at some point, and the gap can be seen.
func TestNotificationsToASlowHub(t *testing.T) {
	t.Parallel()
	slow, quick := newNotifiedHub(t), newNotifiedHub(t)
	o := node.Publishing(t, version(0))
	n, said, stop := notifying(t, o, func(n *hub.Notifier) { n.Within, n.MostWaiting, n.Most = 300*time.Millisecond, 6, 2 }, slow, quick)
	begun(t, o, slow, quick)
	slow.answering(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	for i := range 4 {
		o.Put(version(i + 1))
		testenv.Eventually(t, func() bool { return counted(t, n, quick, "sent") == 3*(i+1) }, "the other hub")
	}
	testenv.Eventually(t, func() bool { return counted(t, n, slow, "left_out") > 0 }, "it is too far behind")
	tried := slow.tried()
	testenv.Eventually(t, func() bool { return slow.tried() > tried+6 }, "another round of five tries")
	assert.Equal(t, 6, counted(t, n, slow, "left_out"), "each change is left out once")
	slow.answering(nil)
	testenv.Eventually(t, func() bool { return counted(t, n, slow, "sent")+counted(t, n, slow, "left_out") == 12 }, "the hub is quick again")
	stop()
	assert.Contains(t, said.String(), "more changes wait for a hub")
	all := slow.sent()
	every := quick.sent()
	assert.Zero(t, assertFollow(t, all[0].topic, every))
	all = append([]notification{every[0]}, all...)
	all[0].head.Until = all[0].head.From
	all[0].items = nil
	assert.Equal(t, 1, assertFollow(t, all[0].topic, all))
	assert.Equal(t, every[len(every)-1].head.Until, all[len(all)-1].head.Until)
}

// What a hub refuses is not sent again; what comes later is sent.
func TestNotificationsThatAHubRefuses(t *testing.T) {
	t.Parallel()
	h := newNotifiedHub(t)
	h.failing(http.StatusForbidden)
	o := node.Publishing(t, version(0))
	n, said, _ := notifying(t, o, nil, h)
	begun(t, o, h)
	o.Put(version(1))
	testenv.Eventually(t, func() bool { return counted(t, n, h, "refused") == 3 }, "the refusal")
	assert.Equal(t, 1, h.tried())
	assert.Contains(t, said.String(), "a hub of ResourceSync Change Notification, and that it takes this topic")
	h.answering(nil)
	o.Put(version(2))
	testenv.Eventually(t, func() bool { return counted(t, n, h, "sent") == 3 }, "the next change")
}

// Redirects are not followed.
func TestNotificationsAreNotRedirected(t *testing.T) {
	t.Parallel()
	inside, h := newNotifiedHub(t), newNotifiedHub(t)
	h.answering(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
		return true
	})
	o := node.Publishing(t, version(0))
	n, said, _ := notifying(t, o, nil, h)
	begun(t, o, h)
	o.Put(version(1))
	testenv.Eventually(t, func() bool { return counted(t, n, h, "refused") == 3 }, "the refusal")
	assert.Zero(t, inside.tried())
	assert.Contains(t, said.String(), "redirects to "+inside.URL)
}

// What hubs know is worth nothing where it is damaged, and where the collection has another history.
func TestNotificationsBeginAnew(t *testing.T) {
	t.Parallel()
	h := newNotifiedHub(t)
	o := node.Publishing(t, version(0))
	file := filepath.Join(o.DB.Dir(), "notified.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"x": [}`), 0o600))
	n, said, _ := notifying(t, o, nil, h)
	testenv.Eventually(t, func() bool { return strings.Contains(said.String(), "delete the file if it is damaged") }, "the damage")
	begun(t, o, h)
	o.Delete("egov")
	o.Create("egov", version(1))
	testenv.Eventually(t, func() bool { return counted(t, n, h, "sent") == 4 }, "another history")
	require.Len(t, h.sent(), 1)
	assert.Equal(t, resourcesync.Created, h.sent()[0].items[0].Change)
}

// A server advertises the channel of a collection in its Capability List and at the topic, unless only some may read the collection.
func TestChannelsOfNotifications(t *testing.T) {
	t.Parallel()
	h := newNotifiedHub(t)
	withHub := func(c *server.Config) { c.NotificationHubs = []string{h.URL} }
	o := node.Publishing(t, version(0), withHub, func(c *server.Config) {
		c.ReadTokens = map[string][]string{"closed": {"a token that is long"}}
	})
	o.Create("closed", version(0))
	require.NoError(t, o.Server.Start())
	begun(t, o, h)
	topic := o.URL + "/topicmaps/egov/resourcesync/notifications"
	channel := func(name string, change func(*http.Request)) (found *resourcesync.Item) {
		r, err := http.NewRequest(http.MethodGet, o.URL+"/topicmaps/"+name+"/resourcesync/capabilitylist.xml", nil)
		require.NoError(t, err)
		change(r)
		a, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer a.Body.Close()
		require.Equal(t, http.StatusOK, a.StatusCode)
		list, err := resourcesync.Read(a.Body, topic, resourcesync.Limits{})
		require.NoError(t, err)
		for {
			item, err := list.Next()
			if err == io.EOF {
				return found
			}
			require.NoError(t, err)
			if item.Capability == resourcesync.ChangeNotification {
				found = &item
			}
		}
	}
	item := channel("egov", func(*http.Request) {})
	require.NotNil(t, item)
	assert.Equal(t, topic, item.Loc)
	link, _ := item.Link(resourcesync.RelHub)
	assert.Equal(t, h.URL, link.Href)
	token := func(r *http.Request) { r.Header.Set("Authorization", "Bearer a token that is long") }
	assert.Nil(t, channel("closed", token))

	a, err := http.Get(topic)
	require.NoError(t, err)
	a.Body.Close()
	assert.Equal(t, http.StatusNoContent, a.StatusCode)
	assert.Equal(t, []string{"<" + h.URL + `>; rel="hub", <` + topic + `>; rel="self"`}, a.Header.Values("Link"))

	o.PutAs("closed", version(1))
	o.Put(version(1))
	testenv.Eventually(t, func() bool { return len(h.sent()) > 0 }, "a change")
	for _, one := range h.sent() {
		assert.Equal(t, topic, one.topic)
	}
	assert.Len(t, h.sent()[0].items, 3)

	none := node.Publishing(t, version(0))
	a, err = http.Get(none.URL + "/topicmaps/egov/resourcesync/notifications")
	require.NoError(t, err)
	defer a.Body.Close()
	assert.Equal(t, http.StatusNotFound, a.StatusCode)
}
