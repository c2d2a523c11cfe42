package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// with returns a node with a data folder and the given status.
func with(t *testing.T, n status.Node) *Node {
	dir := filepath.Join(t.TempDir(), "data")
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Badger: badger.Small})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	b, err := json.Marshal(n)
	require.NoError(t, err)
	return &Node{Program: "tmshare-client", Data: dir, MaxLag: time.Hour, Now: time.Now, Run: func(_ context.Context, args ...string) control.Outcome {
		if args[0] == "status" {
			return control.Outcome{Out: string(b)}
		}
		return control.Outcome{Out: "[]"}
	}}
}

func remedies(r *Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.What+" → "+f.Remedy)
	}
	return all
}

// Each state of a subscription that needs a person is a finding, with the command that repairs it.
func TestFindingsOfSubscriptions(t *testing.T) {
	t.Parallel()
	seconds := 7200.0
	for name, c := range map[string]struct {
		st       status.Status
		what, do string
	}{
		"a fork":        {status.Status{State: status.RoundFailed, Refused: true, LastError: "x"}, "shows different histories", "tmshare-client trust m --data"},
		"no protocol":   {status.Status{State: status.ProtocolMissing, Missing: "needs an extension with the protocol x"}, "it needs an extension with", "tmshare-client unsubscribe m --data"},
		"a failure":     {status.Status{State: status.RoundFailed, LastError: "no such host"}, "no such host", "tmshare-client sync m --data"},
		"a move":        {status.Status{State: status.RoundFailed, LastError: "x; the source says", Moves: `"tmshare-client source set-url m http://new/"`}, "x; the", `"tmshare-client source set-url m http://new/ --data `},
		"quarantine":    {status.Status{State: status.Incomplete, Quarantined: 3}, "topics in quarantine: 3", "tmshare-client retry m --data"},
		"unproven":      {status.Status{State: status.InStep, Unproven: "another digest"}, "another digest", "tmshare-client verify m --data"},
		"different":     {status.Status{State: status.InStep, Unproven: "another digest", Differs: true}, "another digest", "tmshare-client replace m --data"},
		"old":           {status.Status{State: status.InStep, Lag: &seconds}, "2h0m0s old", "tmshare-client watch --data"},
		"of the future": {status.Status{State: status.InStep, Ahead: 1000}, "later than now", "tmshare-client replace m --data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.st.Name, c.st.Feed = "m", "http://127.0.0.1:1/topicmaps/m/fragments"
			n := with(t, status.Node{Follows: []status.Status{c.st}})
			n.Offline = true
			r := Look(t.Context(), n)
			require.Len(t, r.Findings, 1, "%v", remedies(r))
			assert.Equal(t, "subscription m", r.Findings[0].Where)
			assert.Contains(t, r.Findings[0].What, c.what)
			assert.Contains(t, r.Findings[0].Remedy, c.do)
		})
	}
}

// A server that does not answer, wants a token, or has another clock, is a finding. One that does not know HEAD is not.
func TestFindingsOfServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		what   string
	}{
		"as it should be": {func(http.ResponseWriter) {}, ""},
		"no HEAD":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) }, ""},
		"refused":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, "401"},
		"broken":          {func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, "it cannot be reached"},
		"moved": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://new.example.org/m")
			w.WriteHeader(http.StatusPermanentRedirect)
		}, "leads away from"},
		"another clock": {func(w http.ResponseWriter) {
			w.Header().Set("Date", time.Now().Add(-2*time.Hour).UTC().Format(http.TimeFormat))
		}, "differ by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			defer s.Close()
			r := Look(t.Context(), with(t, status.Node{Follows: []status.Status{{Name: "m", State: status.InStep, Feed: s.URL + "/m"}}}))
			if c.what == "" {
				assert.Empty(t, remedies(r))
				return
			}
			require.Len(t, r.Findings, 1, "%v", remedies(r))
			assert.Contains(t, r.Findings[0].What, c.what)
			assert.Equal(t, name == "moved", strings.Contains(r.Findings[0].Remedy, "source set-url m http://new.example.org/m --data "))
		})
	}
}

// Files that others can read are a finding.
func TestFindingsOfFolders(t *testing.T) {
	if !badger.CanShare || os.Getuid() < 0 {
		t.Skip("NOT CHECKED: files have no modes here")
	}
	n := with(t, status.Node{})
	require.NoError(t, os.Chmod(filepath.Join(n.Data, "snapshots"), 0o755))
	r := Look(t.Context(), n)
	require.Len(t, r.Findings, 1, "%v", remedies(r))
	assert.Equal(t, `"chmod -R go= `+n.Data+`"`, r.Findings[0].Remedy)
	require.NoError(t, os.Chmod(filepath.Join(n.Data, "snapshots"), 0o700))

	require.NoError(t, os.WriteFile(filepath.Join(n.Data, "node.json"), []byte(`{"format": 99}`), 0o600))
	r = Look(t.Context(), n)
	require.Len(t, r.Findings, 1, "%v", remedies(r))
	assert.Contains(t, r.Findings[0].What, "is in format 99")
}

// Settings that let others read tokens, or leave them without protection, are findings.
func TestFindingsOfSettings(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("admin: 0123456789abcdef0123\n"), 0o600))
	guessed := filepath.Join(t.TempDir(), "guessed")
	require.NoError(t, os.WriteFile(guessed, []byte("0123456789abcdef0123\na\nb\nc\n"), 0o600))
	for name, c := range map[string]struct {
		s    extension.Serving
		what []string
	}{
		"this machine":                     {extension.Serving{Listen: "127.0.0.1:8080"}, nil},
		"behind a proxy":                   {extension.Serving{Listen: "127.0.0.1:8080", BaseURL: "https://maps.example.org", TokenFile: tokens}, nil},
		"everywhere, no address":           {extension.Serving{Listen: ":8080"}, []string{"nothing says which one", "has no tokens for writing"}},
		"everywhere, no tokens":            {extension.Serving{Listen: "0.0.0.0:8080", BaseURL: "https://maps.example.org"}, []string{"has no tokens for writing"}},
		"everywhere, tokens in plain HTTP": {extension.Serving{Listen: ":8080", BaseURL: "http://maps.example.org", TokenFile: tokens}, []string{"takes tokens over plain HTTP", "is plain HTTP, and there are tokens"}},
		"another machine":                  {extension.Serving{Listen: "10.9.0.1:8080", TokenFile: tokens}, []string{"10.9.0.1:8080 takes tokens over plain HTTP"}},
		"metrics for all":                  {extension.Serving{Listen: "127.0.0.1:8080", Metrics: ":9090"}, []string{"shows to everybody"}},
		"no file with tokens":              {extension.Serving{Listen: "127.0.0.1:8080", TokenFile: tokens + ".gone"}, []string{"cannot be read"}},
		"no certificate":                   {extension.Serving{Listen: "127.0.0.1:8080", Cert: tokens, Key: tokens}, []string{"failed to find any PEM data"}},
		"no address at all":                {extension.Serving{Listen: "8080"}, []string{"missing port"}},
		"no port":                          {extension.Serving{Listen: "0.0.0.0:x"}, []string{"unknown port"}},
		"no name before the file":          {extension.Serving{Listen: "127.0.0.1:8080", ReadTokenFiles: []string{tokens, "=" + tokens, "m="}}, []string{"names no collection", "names no collection", "or no file"}},
		"many short tokens":                {extension.Serving{Listen: "127.0.0.1:8080", TokenFile: guessed}, []string{"the token number 2"}},
		"no file with tokens for reading":  {extension.Serving{Listen: "127.0.0.1:8080", ReadTokenFiles: []string{"m=" + tokens + ".none"}}, []string{"cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Report{}
			r.settings(&Node{Program: "tmshare-server", Serving: &c.s, Now: time.Now})
			require.Len(t, r.Findings, len(c.what), "%v", remedies(r))
			for i, what := range c.what {
				assert.Contains(t, r.Findings[i].What, what)
			}
		})
	}
}

// A certificate that ends soon, has ended, or is for another host, is a finding.
func TestFindingsOfCertificates(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ends := time.Now().Add(90 * 24 * time.Hour)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: ends, DNSNames: []string{"maps.example.org"}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	s := extension.Serving{Listen: "127.0.0.1:8080", Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	require.NoError(t, os.WriteFile(s.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	require.NoError(t, os.WriteFile(s.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	expires := "the certificate expires on " + ends.UTC().Format(time.DateOnly)
	for _, c := range []struct {
		before time.Duration // of its end
		host   string
		what   []string
	}{
		{30 * 24 * time.Hour, "maps.example.org", nil},
		{20 * 24 * time.Hour, "maps.example.org", []string{expires}},
		{-24 * time.Hour, "maps.example.org", []string{expires}},
		{30 * 24 * time.Hour, "old.example.org", []string{"the certificate is for maps.example.org, not for old.example.org"}},
	} {
		s.BaseURL = "https://" + c.host
		r := &Report{}
		r.certificate(&Node{Serving: &s, Now: func() time.Time { return ends.Add(-c.before) }})
		require.Len(t, r.Findings, len(c.what), "%v", remedies(r))
		for i, what := range c.what {
			assert.Equal(t, what, r.Findings[i].What)
		}
	}
}

// Files that collections follow, and that are missing or broken, are findings. They say where.
func TestFindingsOfFollowedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, broken := filepath.Join(dir, "good.xtm"), filepath.Join(dir, "broken.xtm")
	require.NoError(t, os.WriteFile(good, []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`), 0o600))
	require.NoError(t, os.WriteFile(broken, []byte("<topicMap xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.1\">\n<topic>"), 0o600))
	s := extension.Serving{Watch: true, Maps: []string{"a=" + good, "b=" + broken, "c=" + good + ".gone"}}
	n := &Node{Program: "tmshare-server", Serving: &s, Now: time.Now}
	r := &Report{}
	r.watched(t.Context(), n)
	require.Len(t, r.Findings, 2, "%v", remedies(r))
	assert.Equal(t, "collection b", r.Findings[0].Where)
	assert.Contains(t, r.Findings[0].What, "the file that it follows is not published: "+broken+":2:")
	assert.Contains(t, r.Findings[0].Remedy, "tmshare-client validate "+broken)
	assert.Equal(t, "collection c", r.Findings[1].Where)
	assert.Contains(t, r.Findings[1].What, "no such file")

	merging := filepath.Join(dir, "below", "merging.xtm")
	require.NoError(t, os.Mkdir(filepath.Dir(merging), 0o700))
	require.NoError(t, os.WriteFile(merging, []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><mergeMap href="../good.xtm"/></topicMap>`), 0o600))
	s.Maps = []string{"d=" + merging}
	for root, findings := range map[string]int{"": 1, dir: 0} {
		s.Root = root
		r = &Report{}
		r.watched(t.Context(), n)
		assert.Len(t, r.Findings, findings, "--root %s: %v", root, remedies(r))
	}

	s.Watch = false
	r = &Report{}
	r.watched(t.Context(), n)
	assert.Empty(t, r.Findings)
}
