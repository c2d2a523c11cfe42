package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server/web"
)

// MaxForm is the maximum length of a form, in bytes.
const MaxForm = 4 << 20

// Address is that of the page to sign in.
const Address = "/sign-in" + Ending

// challenge is the header that answers with 401 require (RFC 9110 §11.6.1, WWW-Authenticate). Browsers ignore it.
const challenge = `Bearer realm="tmshare"`

// routes adds the page to sign in.
func (s *Sessions) routes(handle func(path string, h web.Handler, methods ...string)) {
	anybody := func(*http.Request) error { return nil }
	handle(Address, s.private(anybody, s.page), "GET", "HEAD")
	handle(Address, s.private(anybody, s.sent), "POST")
}

// Form returns a handler of a page with a form. may returns an error if a request may not use it. h gets forms only
// from a page of this server in the same session, as PostForm.
func (s *Sessions) Form(may func(*http.Request) error, h web.Handler) web.Handler {
	return s.private(may, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodPost {
			if err := parse(w, r); err != nil {
				return err
			}
			if err := s.check(r); err != nil {
				return err
			}
		}
		return h(w, r)
	})
}

// private returns a handler whose answers are for one person.
func (s *Sessions) private(may func(*http.Request) error, h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		web.RecorderOf(r).Private = true
		if err := may(r); err != nil {
			var p *web.Problem
			if !errors.As(err, &p) || p.Status != http.StatusUnauthorized {
				return err
			}
			if s.Leads(w, r) {
				return nil
			}
			if kept, failed := s.keep(w, r); kept {
				return failed
			}
			w.Header().Set("WWW-Authenticate", challenge)
			return err
		}
		return h(w, r)
	}
}

func parse(w http.ResponseWriter, r *http.Request) error {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"),
		";"); strings.TrimSpace(media) != "application/x-www-form-urlencoded" {
		return web.Problemf(http.StatusUnsupportedMediaType,
			"this address takes what its form sends; programs POST topics to the address of the topics instead")
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	err := r.ParseForm()
	var known *web.Problem
	if large := new(http.MaxBytesError); errors.As(err, &large) || errors.As(err, &known) {
		return err
	}
	if err != nil {
		return web.Problemf(http.StatusBadRequest, "the form cannot be read: go back, and send it again")
	}
	return nil
}

// Leads leads a browser to the page to sign in, and from there back, and reports whether it did.
func (s *Sessions) Leads(w http.ResponseWriter, r *http.Request) bool {
	if len(s.byID) == 0 || !ForPeople(r) || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return s.SeeOther(w, r, string(s.URLs)+Address+"?to="+url.QueryEscape(r.URL.RequestURI())) == nil
}

// backTo returns the page to open after signing in; it is always an address of this server.
func (s *Sessions) backTo(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(path, "/") ||
		strings.ContainsAny(path, "\\\r\n") || len(path) > 8<<10 {
		return s.URLs.Overview() + Ending
	}
	return string(s.URLs) + u.RequestURI()
}

// form is the data of the page to sign in.
type form struct {
	Address     string // of the page itself
	To          string // where it leads back to
	Back        string // the same, absolute
	Code        string
	Signed      bool
	Name        string // of the owner of the session, "" if unknown
	Wrong       bool   // the token that was given
	NoTokens    bool   // the server has no tokens
	Unencrypted bool

	Kept             []Field // of a form that was sent after the session had ended
	Again, AgainCode string  // the address and the code to send it again; "": not yet
}

func (s *Sessions) show(w http.ResponseWriter, r *http.Request, status int, f form) error {
	if t := s.Of(r); t != nil {
		f.Signed, f.Name = true, t.Name
	}
	f.Address = string(s.URLs) + Address
	f.Code, f.Back, f.NoTokens = s.Code(r), s.backTo(f.To), len(s.byID) == 0
	f.Unencrypted = !s.secure && !web.IsLoopback(strings.TrimPrefix(string(s.URLs), "http://"))
	return s.WriteForm(w, r, status, "signin", Say(r, texts.SignIn), nil, &f)
}

func (s *Sessions) page(w http.ResponseWriter, r *http.Request) error {
	return s.show(w, r, http.StatusOK, form{To: r.URL.Query().Get("to")})
}

// sent begins a session, or ends it.
func (s *Sessions) sent(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkSite(r); err != nil {
		return err
	}
	if err := parse(w, r); err != nil {
		return err
	}
	if r.PostForm.Has("out") {
		return s.signOut(w, r)
	}
	t, f := s.Known.Find(strings.TrimSpace(r.PostForm.Get("token"))),
		form{To: r.PostForm.Get("to"), Kept: Fields(r.PostForm, keptPrefix)}
	if t == nil {
		if err := s.Guesses.Wrong(r); err != nil {
			return err
		}
		w.Header().Set("WWW-Authenticate", challenge)
		f.Wrong = true
		return s.show(w, r, http.StatusUnauthorized, f)
	}
	cookie, code := s.begin(t)
	http.SetCookie(w, cookie)
	if len(f.Kept) > 0 {
		return s.again(w, r, f, code)
	}
	return s.SeeOther(w, r, s.backTo(f.To))
}

func (s *Sessions) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.check(r); err != nil {
		return err
	}
	gone := s.cookieOf("")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	return s.SeeOther(w, r, s.URLs.Overview()+Ending)
}

// SeeOther redirects to another page in the requested languages, on the requested host. Caches do not keep the answer,
// because it may differ for other clients.
func (p *Pages) SeeOther(w http.ResponseWriter, r *http.Request, to string) error {
	w.Header().Set("Cache-Control", "no-store")
	to = layout.ToPage(r, to)
	if root := p.root(r); root != "" {
		if own, ok := strings.CutPrefix(to, string(p.URLs)+"/"); ok {
			to = root + own
		}
	}
	w.Header().Set("Location", to) // net/http would resolve it in the path that it sees, which a proxy may have cut
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// Field is a field of a form that was sent, to be sent again.
type Field struct{ Name, Value string }

// keptPrefix begins the names of fields on the page to sign in that belong to a form that was sent after the session
// had ended.
const keptPrefix = "kept-"

// keep answers a form of a session that has ended with the page to sign in, which keeps the fields. It reports whether
// it did. It does not keep a form that may come from another site, because signing in would send it.
func (s *Sessions) keep(w http.ResponseWriter, r *http.Request) (bool, error) {
	own := r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
	if len(s.byID) == 0 || !ForPeople(r) || r.Method != http.MethodPost || !own || s.checkSite(r) != nil {
		return false, nil
	}
	if err := parse(w, r); err != nil {
		return true, err
	}
	w.Header().Set("WWW-Authenticate", challenge)
	return true, s.show(w, r, http.StatusUnauthorized, form{To: r.URL.RequestURI(), Kept: Fields(r.PostForm, "")})
}

// Fields returns the fields whose names begin with a prefix, without it, sorted by name. It leaves out the code, which
// may be of a session that has ended, and the fields in but.
func Fields(sent url.Values, prefix string, but ...string) (all []Field) {
	for name, values := range sent {
		name, found := strings.CutPrefix(name, prefix)
		if !found || name == layout.CodeField || slices.Contains(but, name) {
			continue
		}
		for _, value := range values {
			all = append(all, Field{name, value})
		}
	}
	slices.SortFunc(all, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// again answers a new sign-in with the kept form and a button to send it. The page shows the change first.
func (s *Sessions) again(w http.ResponseWriter, r *http.Request, f form, code string) error {
	for i := range f.Kept {
		if f := &f.Kept[i]; f.Name == "do" && f.Value == "publish" {
			f.Value = "preview"
		}
	}
	f.Again, f.AgainCode = s.backTo(f.To), code
	return s.show(w, r, http.StatusOK, f)
}
