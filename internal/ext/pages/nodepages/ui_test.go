package nodepages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext/pages/nodepages"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rejections"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/internal/testkit/webpage"
	"github.com/tmshare/tmshare/tmdm"
)

// shown are pages on a socket, about what commands are made to print.
type shown struct {
	*testing.T
	http *http.Client
	root string

	mu      sync.Mutex
	prints  map[string]any // by the first word of a command
	fails   error
	command []string // the last one
}

func show(t *testing.T, prints map[string]any) *shown {
	s := &shown{T: t, prints: prints}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	pages, err := nodepages.New(s.run, listener.Addr(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pages.Serve(ctx, listener) }()
	t.Cleanup(func() { end(); assert.NoError(t, <-ended) })
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	s.http, s.root = &http.Client{Jar: jar}, "http://"+listener.Addr().String()
	once := pages.AddressOnce()
	a, err := s.http.Get(once)
	require.NoError(t, err)
	a.Body.Close()
	assert.Equal(t, "/node.html", a.Request.URL.Path)
	a, err = http.Get(once)
	require.NoError(t, err)
	a.Body.Close()
	assert.Equal(t, http.StatusForbidden, a.StatusCode, "it counts once")
	return s
}

func (s *shown) run(_ context.Context, args ...string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command = args
	if s.fails != nil {
		return nil, s.fails
	}
	return json.Marshal(s.prints[args[0]])
}

func (s *shown) get(path string, want int) (webpage.Page, int) {
	s.Helper()
	a, err := s.http.Get(s.root + path)
	require.NoError(s, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(s, err)
	require.Equal(s, want, a.StatusCode, "%s", body)
	assert.Equal(s, "no-store", a.Header.Get("Cache-Control"))
	return webpage.Read(s, s.root+path, a.Header, body), len(body)
}

var subscriptions = []map[string]any{{"name": "egov"}, {"name": "--data=/etc"}}

// No statement of a map runs or makes a page large, and no value is taken for a flag.
func TestHostileTopics(t *testing.T) {
	const markup = `</title><script>alert(1)</script>"'><img src=x onerror=alert(1)>`
	topic := &merged.Topic{TopicSI: "http://x/" + markup, SubjectIdentifiers: []merged.ClaimedLocator{{Locator: "javascript:alert(1)", By: []string{"egov"}}}}
	for i := range 10_000 {
		topic.Names = append(topic.Names, merged.ClaimedName{ClaimedValue: merged.ClaimedValue{
			Value: fmt.Sprint("--name ", i, markup, "\u202e"), Type: string(tmdm.PSIDefaultNameType), By: []string{"egov", "--data=/etc", "local"},
		}})
	}
	topic.Occurrences = []merged.ClaimedValue{
		{Value: strings.Repeat("long ", 200_000), Type: "http://x/t", Datatype: tmdm.XSDString, By: []string{"egov"}},
		{Value: "javascript:alert(2)", Type: "javascript:alert(3)", Datatype: tmdm.XSDAnyURI, By: []string{"egov"}, Scope: []string{"http://x/theme"}},
	}
	topic.Rejected = []merged.Rejected{{Rejected: store.Rejected{Rejection: rejections.Rejection{
		Claim: rejections.Claim{Kind: rejections.Association, Type: "http://x/a", Roles: []rejections.Role{{Type: "http://x/r", Player: "http://x/p"}}}, Reason: markup,
	}}, By: "egov"}}
	s := show(t, map[string]any{"status": subscriptions, "topic": topic, "edit": nil})
	p, size := s.get("/topic.html?si="+url.QueryEscape("http://x/t"), http.StatusOK)
	assert.Less(t, size, 400<<10)
	assert.Contains(t, p.Text, "<script>alert(1)", "as text")
	assert.Contains(t, p.Text, "There are more names than this page shows")
	assert.Contains(t, p.Text, "1,000,000 bytes")
	assert.Contains(t, p.Text, "The source no longer says so.")
	assert.NotContains(t, p.Text, "Reject what local says", "one's own statements are removed instead")
	var form webpage.Form
	for _, f := range p.Forms {
		if f.Fields.Get("kind") == "name" {
			form = f
			break
		}
	}
	assert.Equal(t, []string{"egov", "--data=/etc"}, form.Fields["source"])
	form.Fields.Set("source", "--data=/etc")
	form.Fields.Set("reason", "--because")
	a, err := s.http.PostForm(form.Action, form.Fields)
	require.NoError(t, err)
	a.Body.Close()
	assert.Equal(t, "reject", a.Request.URL.Query().Get("done"))
	p.Forms = p.Forms[len(p.Forms)-1:]
	assert.Equal(t, "unreject", p.Forms[0].Fields.Get("do"))

	s.mu.Lock()
	s.fails = &nodepages.CommandError{Text: markup}
	s.mu.Unlock()
	a, err = s.http.PostForm(form.Action, form.Fields)
	require.NoError(t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusConflict, a.StatusCode)
	assert.Contains(t, webpage.Read(t, s.root, a.Header, body).Text, markup)
	assert.Equal(t, []string{
		"edit", "reject", "name", "--source=--data=/etc", "--reason=--because", "--type=" + string(tmdm.PSIDefaultNameType), "--",
		topic.TopicSI, topic.Names[0].Value,
	}, s.command)
}

// Each kind of claim is named as the command takes it.
func TestClaimsOfForms(t *testing.T) {
	s := show(t, map[string]any{"status": subscriptions, "edit": nil, "topic": merged.Topic{TopicSI: "http://x/t"}})
	p, _ := s.get("/topic.html?si=http://x/t", http.StatusOK)
	assert.Empty(t, p.Forms[0].Fields.Get("code"), "the form that finds topics")
	s.mu.Lock()
	s.prints["topic"] = merged.Topic{TopicSI: "http://x/t", SubjectIdentifiers: []merged.ClaimedLocator{{Locator: "http://x/t", By: []string{"egov"}}}}
	s.mu.Unlock()
	p, _ = s.get("/topic.html?si=http://x/t", http.StatusOK)
	code := p.Forms[1].Fields.Get("code")
	for want, form := range map[string]url.Values{
		"edit reject variant --source=egov --datatype=d --scope=a --scope=b -- t of v": {"kind": {"variant"}, "of": {"of"}, "datatype": {"d"}, "scope": {"a", "b"}, "type": {"n"}},
		"edit reject occurrence --source=egov --type=o --datatype=d -- t v":            {"kind": {"occurrence"}, "type": {"o"}, "datatype": {"d"}},
		"edit unreject identifier --source=egov -- t v":                                {"kind": {"identifier"}, "do": {"unreject"}, "reason": {"none"}},
		"edit reject association --source=egov --type=a -- r1=p1 r2=p2":                {"kind": {"association"}, "type": {"a"}, "role": {"r1", "r2"}, "player": {"p1", "p2"}},
	} {
		for k, v := range (url.Values{"code": {code}, "source": {"egov"}, "topic": {"t"}, "value": {"v"}, "do": {"reject"}, "si": {"http://x/t"}}) {
			if !form.Has(k) {
				form[k] = v
			}
		}
		s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		a, err := s.http.PostForm(s.root+"/topic.html", form)
		require.NoError(t, err)
		a.Body.Close()
		assert.Equal(t, http.StatusSeeOther, a.StatusCode)
		assert.Equal(t, want, strings.Join(s.command, " "))
	}
	for what, form := range map[string]url.Values{
		"no kind":      {"code": {code}, "source": {"egov"}, "do": {"reject"}},
		"another kind": {"code": {code}, "source": {"egov"}, "do": {"reject"}, "kind": {"--help"}},
		"no source":    {"code": {code}, "do": {"reject"}, "kind": {"name"}},
		"odd roles":    {"code": {code}, "source": {"egov"}, "do": {"reject"}, "kind": {"association"}, "role": {"r"}},
		"nothing":      {"code": {code}},
	} {
		a, err := s.http.PostForm(s.root+"/topic.html", form)
		require.NoError(t, err)
		a.Body.Close()
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, what)
	}
	a, err := s.http.PostForm(s.root+"/topic.html", url.Values{"code": {code}, "value": {strings.Repeat("x", 2<<20)}})
	require.NoError(t, err)
	a.Body.Close()
	assert.Equal(t, http.StatusRequestEntityTooLarge, a.StatusCode)
}

// The error of a command is shown; later errors are in the log.
func TestFailures(t *testing.T) {
	s := show(t, map[string]any{"status": struct{}{}})
	s.fails = errors.New("of no interest to people")
	p, _ := s.get("/node.html", http.StatusServiceUnavailable)
	assert.Contains(t, p.Text, "The log says why.")
	s.fails = &nodepages.CommandError{Text: "the folder is damaged; run check"}
	p, _ = s.get("/node.html", http.StatusServiceUnavailable)
	assert.Contains(t, p.Text, "The folder is damaged; run check")
	s.get("/topic.html", http.StatusBadRequest)
	p, _ = s.get("/topic.html?si=x", http.StatusNotFound)
	assert.Contains(t, p.Text, "The folder is damaged; run check")
}
