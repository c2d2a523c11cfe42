package nodepages

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

// guard admits only the person who started the program. Other users of the machine can reach the socket, pages of other
// sites can make the browser send requests to it, and other host names can resolve to it (DNS rebinding). A request
// therefore needs the cookie that the printed address sets; its host must be this machine; and a form must come from
// one of the pages.
type guard struct {
	port   string
	cookie string // its name: browsers send cookies to all ports of a host
	key    string // its value, and in the address that is printed
	form   string // in each form

	mu    sync.Mutex
	once  string // a key that counts once: command lines, as that of the browser, are seen by others
	until time.Time
}

// openPath is the address at which the cookie is set.
const openPath = "/open"

func newGuard(port string) *guard {
	return &guard{port: port, cookie: "tmshare-ui-" + port, key: rand.Text(), form: rand.Text()}
}

// address returns the one that opens the pages, with a key that is good as long as the program runs.
func (g *guard) address(root string) string {
	return root + openPath + "?" + url.Values{"key": {g.key}}.Encode()
}

// addressOnce returns one that opens the pages once, within a minute.
func (g *guard) addressOnce(root string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.once, g.until = rand.Text(), time.Now().Add(time.Minute)
	return root + openPath + "?" + url.Values{"key": {g.once}}.Encode()
}

// opens reports whether a key opens the pages.
func (g *guard) opens(key string) bool {
	if same(key, g.key) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.once == "" || !same(key, g.once) || time.Now().After(g.until) {
		return false
	}
	g.once = ""
	return true
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// check returns why a request is refused.
func (g *guard) check(r *http.Request) error {
	if !g.named(r.Host) {
		return refused(texts.WrongAddress)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return refused(texts.ForeignForm)
		}
	}
	if c, err := r.Cookie(g.cookie); err != nil || !same(c.Value, g.key) {
		return refused(texts.NotForYou)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return refused(texts.ForeignForm)
	}
	return nil
}

// checkForm returns why a form is refused.
func (g *guard) checkForm(form url.Values) error {
	if !same(form.Get(layout.CodeField), g.form) {
		return refused(texts.OldForm)
	}
	return nil
}

// named reports whether the header Host names this machine and our port.
func (g *guard) named(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, "80"
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return port == g.port && (strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback())
}

func refused(text texts.Text) error { return &Problem{Status: http.StatusForbidden, Text: text} }

// open sets the cookie for a reader with the key.
func (g *guard) open(w http.ResponseWriter, r *http.Request) error {
	if !g.named(r.Host) || !g.opens(r.URL.Query().Get("key")) {
		return refused(texts.OldAddress)
	}
	http.SetCookie(w,
		&http.Cookie{Name: g.cookie, Value: g.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, NodePath, http.StatusSeeOther)
	return nil
}
