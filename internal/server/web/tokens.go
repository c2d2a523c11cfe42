package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Tokens are the SHA-256 sums of bearer tokens: of one length, so that comparing
// them says nothing about them.
type Tokens [][sha256.Size]byte

// NewTokens returns the sums of tokens.
func NewTokens(plain []string) Tokens {
	var all Tokens
	for _, t := range plain {
		all = append(all, sha256.Sum256([]byte(t)))
	}
	return all
}

// Holds reports whether the token of the request is one of t, in a time that does
// not depend on which, or on how far it is right.
func (t Tokens) Holds(r *http.Request) bool {
	token, ok := bearer(r)
	if !ok {
		return false
	}
	given := sha256.Sum256([]byte(token))
	known := 0
	for i := range t {
		known |= subtle.ConstantTimeCompare(given[:], t[i][:])
	}
	return known != 0
}

// bearer returns the token of a request (RFC 6750 §2.1, Authorization Request
// Header Field).
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// Refused is the error of a request that lacks the right token. what names what it would be for.
func Refused(w http.ResponseWriter, r *http.Request, what string) error {
	w.Header().Set("WWW-Authenticate", `Bearer realm="tmshare"`)
	if _, ok := bearer(r); ok {
		return Problemf(http.StatusUnauthorized, "the token is not one for %s", what)
	}
	return Problemf(http.StatusUnauthorized, "%s needs a token: send \"Authorization: Bearer …\"", what)
}
