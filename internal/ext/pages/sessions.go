package pages

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
)

// Sessions manages the sessions of people who entered a token of the server in their browser. It is safe for concurrent
// use. The server keeps no state of sessions: the cookie names the token and the end of the session, with a code that
// only holders of the token can compute. So sessions outlive the process, and end when the server drops the token. The
// token cannot be derived from the cookie. Forms are valid only with a value that pages of other sites cannot know. The
// cookie does not authorize requests of programs.
type Sessions struct {
	*Pages
	byID   map[[idLength]byte]*web.Token
	cookie string // its name
	path   string // of the base URL: no other server on the host gets the cookie
	secure bool   // browsers send the cookie over HTTPS only

	local []byte // key of the forms of clients that need no token
}

// Lifetime is the maximum duration of a session. Browsers delete its cookie when they are closed.
const Lifetime = 7 * 24 * time.Hour

const (
	idLength    = 12
	nonceLength = 16
	payload     = idLength + 8 + nonceLength // and the time at which the session ends
)

// newSessions returns the sessions of the tokens of a server.
func newSessions(p *Pages) *Sessions {
	sum := sha256.Sum256([]byte(p.URLs))
	s := &Sessions{
		Pages: p, byID: map[[idLength]byte]*web.Token{},
		// Servers on one host share its cookies, even on different ports.
		cookie: "tmshare-" + base64.RawURLEncoding.EncodeToString(sum[:6]),
		secure: strings.HasPrefix(string(p.URLs), "https:"),
		local:  make([]byte, 32),
	}
	if base, err := url.Parse(string(p.URLs)); err == nil {
		s.path = base.EscapedPath()
	}
	switch { // browsers take it only with Secure, and the first one only with Path=/, and from this host alone
	case s.secure && s.path == "":
		s.cookie = "__Host-" + s.cookie
	case s.secure:
		s.cookie = "__Secure-" + s.cookie
	}
	_, _ = rand.Read(s.local) // this never fails
	for i := range s.Known {
		if id := s.id(&s.Known[i]); s.byID[id] == nil {
			s.byID[id] = &s.Known[i]
		}
	}
	return s
}

// id returns the identifier of a token in cookies.
func (s *Sessions) id(t *web.Token) (id [idLength]byte) {
	copy(id[:], t.Key("session id "+string(s.URLs)))
	return id
}

// begin returns the cookie of a new session, and the code of its forms.
func (s *Sessions) begin(t *web.Token) (cookie *http.Cookie, code string) {
	id, value := s.id(t), make([]byte, payload)
	copy(value, id[:])
	binary.BigEndian.PutUint64(value[idLength:], uint64(s.Now().Add(Lifetime).Unix()))
	_, _ = rand.Read(value[idLength+8:])
	code = base64.RawURLEncoding.EncodeToString(s.code(t, "form", value))
	return s.cookieOf(base64.RawURLEncoding.EncodeToString(append(value, s.code(t, "session", value)...))), code
}

func (s *Sessions) cookieOf(value string) *http.Cookie {
	return &http.Cookie{Name: s.cookie, Value: value, Path: s.path + "/", HttpOnly: true, Secure: s.secure,
		SameSite: http.SameSiteStrictMode}
}

// code returns the proof that the owner of the token has made a value for a purpose.
func (s *Sessions) code(t *web.Token, purpose string, value []byte) []byte {
	return codeOf(t.Key(purpose+" "+string(s.URLs)), value)
}

func codeOf(key, value []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(value)
	return mac.Sum(nil)
}

// Of returns the token of the session of a request; nil if it has none.
func (s *Sessions) Of(r *http.Request) *web.Token {
	t, _ := s.session(r)
	return t
}

// session also returns the value that makes the session different from others of the token.
func (s *Sessions) session(r *http.Request) (*web.Token, []byte) {
	if len(s.byID) == 0 || r.Header["Cookie"] == nil {
		return nil, nil
	}
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return nil, nil
	}
	value, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(value) != payload+sha256.Size {
		return nil, nil
	}
	t := s.byID[[idLength]byte(value)]
	if t == nil || !hmac.Equal(value[payload:], s.code(t, "session", value[:payload])) {
		return nil, nil
	}
	if ends := int64(binary.BigEndian.Uint64(value[idLength:])); s.Now().Unix() >= ends {
		return nil, nil
	}
	return t, value[:payload]
}

// Code returns the code that a form must contain in the session of a request.
func (s *Sessions) Code(r *http.Request) string {
	var code []byte
	if t, session := s.session(r); t != nil {
		code = s.code(t, "form", session)
	} else {
		code = codeOf(s.local, []byte("form"))
	}
	return base64.RawURLEncoding.EncodeToString(code)
}

// check refuses a form that a page of this server did not make for this session.
func (s *Sessions) check(r *http.Request) error {
	if err := s.checkSite(r); err != nil {
		return err
	}
	if !hmac.Equal([]byte(r.PostForm.Get(layout.CodeField)), []byte(s.Code(r))) {
		return web.Problemf(http.StatusForbidden,
			"the form is not of this session, so nothing was done: go back, reload the page, and send it again")
	}
	return nil
}

// checkSite refuses a form from a page of another site if the browser names the site.
func (s *Sessions) checkSite(r *http.Request) error {
	for _, site := range r.Header.Values("Sec-Fetch-Site") { // W3C Fetch Metadata Request Headers
		if site != "same-origin" {
			return foreign(s.URLs)
		}
	}
	for _, origin := range r.Header.Values("Origin") { // RFC 6454 §7
		if !s.isOwn(origin, r.Host) {
			return foreign(s.URLs)
		}
	}
	return nil
}

func foreign(base addresses.Base) error {
	return web.Problemf(http.StatusForbidden,
		"the form comes from a page of another site, so nothing was done: open this server at %s, and fill it in there", base)
}

// isOwn reports whether an origin is that of this server: of its public URL, or of the requested host. A foreign host
// name that resolves to this server has neither a session here nor the code of one.
func (s *Sessions) isOwn(origin, host string) bool {
	base, err := url.Parse(string(s.URLs))
	if err != nil {
		return false
	}
	from, err := url.Parse(origin)
	named := err == nil && from.Host == host && (len(s.Writers) > 0 || from.Scheme == base.Scheme)
	return named || iri.SameDocument(origin, base.Scheme+"://"+base.Host)
}

// MayEdit returns an error if a request may not use forms. They need the session of a token that may write, or a
// browser on this machine if the server has no such token.
func (s *Sessions) MayEdit(r *http.Request) error {
	if len(s.Writers) == 0 {
		without := *r
		without.Header = r.Header.Clone()
		without.Header.Del("Origin") // browsers send it with forms; it is compared with that of the server
		return s.MayWriteHere(&without)
	}
	if !s.Writers.Has(s.Of(r)) {
		return s.Missing("editing")
	}
	return nil
}

// Missing returns the error of a request that needs a session.
func (s *Sessions) Missing(what string) error {
	return web.Problemf(http.StatusUnauthorized, "%s needs a token: sign in at %s%s", what, s.URLs, Address)
}

// NameOf returns the name of the owner of a request's session; "" if it is not known.
func (s *Sessions) NameOf(r *http.Request) string {
	if t := s.Of(r); t != nil {
		return t.Name
	}
	return ""
}
