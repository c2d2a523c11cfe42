package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
)

// Field is a field of a form that was sent, to be sent again.
type Field struct{ Name, Value string }

// keptPrefix begins the names of fields on the page to sign in that belong to a form that was sent after the session
// had ended.
const keptPrefix = "kept-"

// keep answers a form that was sent after the session had ended with the page to sign in, which keeps what was filled
// in. It reports whether it did. A form that may come from another site is not kept: whoever signs in would send it.
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

// Fields returns the fields whose names begin with a prefix, without it, in the order of their names. The code is left
// out, which may be that of a session that has ended, and so are others.
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

// again answers who has signed in anew with the form that was kept, to be sent by a button. What was to be published is
// shown once more before it is.
func (s *Sessions) again(w http.ResponseWriter, r *http.Request, of form, code string) error {
	for i := range of.Kept {
		if f := &of.Kept[i]; f.Name == "do" && f.Value == "publish" {
			f.Value = "preview"
		}
	}
	of.Again, of.AgainCode = s.backTo(of.To), code
	return s.show(w, r, http.StatusOK, of)
}
