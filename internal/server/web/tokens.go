package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Tokens are the SHA-256 sums of bearer tokens: of equal length, so that the time of comparisons reveals nothing.
type Tokens []Token

// Token is the stored data of a bearer token.
type Token struct {
	sum  [sha256.Size]byte
	Name string // of its owner; "": not known
}

// Key returns a key for a purpose that only holders of the token can compute.
func (t *Token) Key(purpose string) []byte {
	mac := hmac.New(sha256.New, t.sum[:])
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// NewTokens returns the sums of tokens. names are those of some tokens.
func NewTokens(plain []string, names map[string]string) Tokens {
	var all Tokens
	for _, t := range plain {
		all = append(all, Token{sha256.Sum256([]byte(t)), names[t]})
	}
	return all
}

// Holds reports whether the token of the request is one of t, in a time that does not depend on which, or on its
// correct part.
func (t Tokens) Holds(r *http.Request) bool { return t.find(r) != nil }

// NameOf returns the name of the token of the request; "" if it has none, or an unknown one.
func (t Tokens) NameOf(r *http.Request) string {
	if found := t.find(r); found != nil {
		return found.Name
	}
	return ""
}

func (t Tokens) find(r *http.Request) *Token {
	plain, ok := bearer(r)
	if !ok {
		return nil
	}
	return t.Find(plain)
}

// Find returns the one of t with the given text, nil if there is none.
func (t Tokens) Find(plain string) *Token { return t.same(sha256.Sum256([]byte(plain))) }

// Has reports whether a token is one of t. Nil is none.
func (t Tokens) Has(one *Token) bool { return one != nil && t.same(one.sum) != nil }

func (t Tokens) same(sum [sha256.Size]byte) *Token {
	known := -1
	for i := range t {
		known = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t[i].sum[:]), i, known)
	}
	if known < 0 {
		return nil
	}
	return &t[known]
}

// bearer returns the token of a request (RFC 6750 §2.1, Authorization Request
// Header Field).
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// Refused returns the error of a request without a right token. what names the purpose.
func Refused(w http.ResponseWriter, r *http.Request, what string) error {
	w.Header().Set("WWW-Authenticate", `Bearer realm="tmshare"`)
	if _, ok := bearer(r); ok {
		return Problemf(http.StatusUnauthorized, "the token is not one for %s", what)
	}
	return Problemf(http.StatusUnauthorized, "%s needs a token: send \"Authorization: Bearer …\"", what)
}
