package web

import (
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Form is a form of an answer: a media type, and optionally an address for this form only.
type Form struct {
	Ending    string      // of that address; "": none
	MediaType string      // of answers
	known     []knownType // by which requests name it
}

// knownType is a media type. Only the parameters version and profile distinguish forms.
type knownType struct{ base, version, profile string }

// NewForm makes a form of the media types that requests may name. Answers have the first one. ending is that of the
// address for this form only, "" for none.
func NewForm(ending string, mediaTypes ...string) Form {
	f := Form{Ending: ending, MediaType: mediaTypes[0]}
	for _, t := range mediaTypes {
		base, params, err := mime.ParseMediaType(t)
		if err != nil {
			panic("web: " + t + ": " + err.Error()) // a table in the program is wrong
		}
		f.known = append(f.known, knownType{base, params["version"], params["profile"]})
	}
	return f
}

// Choose returns the form that a request prefers, the first of equally preferred ones, and sets the header of the
// answer. Conditions, codings and ranges are implemented by [Answers] or [WriteKept].
func Choose(w http.ResponseWriter, r *http.Request, offered []Form) (int, error) {
	h := w.Header()
	h.Set("Vary", "Accept, Accept-Encoding")
	chosen, err := negotiate(r, offered)
	if err == nil {
		h.Set("Content-Type", offered[chosen].MediaType)
	}
	return chosen, err
}

// EndingVar is the variable of routes that [WithEndings] and [WithAnEnding] make.
const EndingVar = "ext"

// WithEndings returns the part of a route for the ending of a form, or none.
func WithEndings(all []Form) string {
	return "{" + EndingVar + ":" + strings.Join(append([]string{""}, endings(all)...), "|") + "}"
}

// WithAnEnding is [WithEndings] where one must be there.
func WithAnEnding(all []Form) string {
	return "{" + EndingVar + ":" + strings.Join(endings(all), "|") + "}"
}

// endings are those of forms, as regular expressions.
func endings(all []Form) (quoted []string) {
	for _, f := range all {
		if f.Ending != "" {
			quoted = append(quoted, regexp.QuoteMeta(f.Ending))
		}
	}
	return quoted
}

// negotiate chooses a form by the ending of the URL, else by the Accept header (RFC 9110 §12.5.1, Accept): the
// preferred one. Of equally preferred forms it chooses one that is named, else the first.
func negotiate(r *http.Request, offered []Form) (int, error) {
	candidates := offered
	if ending := Var(r, EndingVar); ending != "" {
		candidates = slices.DeleteFunc(slices.Clone(offered), func(f Form) bool { return f.Ending != ending })
		if len(candidates) == 0 {
			return 0, Problemf(http.StatusGone, "this form is not offered here, or no longer; available forms: %s",
				listed(offered))
		}
	}
	best, most := -1, choice{}
	for i, welcome := range qualities(r, candidates) {
		welcome.by = min(welcome.by, named)
		if welcome.q > most.q || welcome.q == most.q && welcome.q > 0 && welcome.by > most.by {
			best, most = i, welcome
		}
	}
	if best < 0 {
		return 0, Problemf(http.StatusNotAcceptable, "the Accept header excludes what is here; available forms: %s",
			listed(candidates))
	}
	return slices.IndexFunc(offered, func(f Form) bool { return f.MediaType == candidates[best].MediaType }), nil
}

// NeverOffered returns the error for a form that never existed.
func NeverOffered(offered []Form) error {
	return Problemf(http.StatusNotFound, "this form is not offered here; available forms: %s", listed(offered))
}

// listed lists the media types of forms, for people.
func listed(all []Form) string {
	types := make([]string, len(all))
	for i, f := range all {
		types[i] = f.MediaType
	}
	return strings.Join(types, " or ")
}

// qualities returns how welcome each form is to a request.
func qualities(r *http.Request, forms []Form) []choice {
	all := make([]choice, len(forms))
	accepted(r, func(mediaRange string, params map[string]string, q float64) {
		for i := range forms {
			if by := forms[i].within(knownType{mediaRange, params["version"], params["profile"]}); by > 0 {
				all[i].offer(q, by)
			}
		}
	})
	return all
}

// within returns the specificity of a media range that includes the form, 0 if it does not. A range without a profile
// includes all profiles, and a form without one is in ranges of any.
func (f *Form) within(asked knownType) (by specificity) {
	if asked.base == "*/*" {
		return anything
	}
	for _, known := range f.known {
		major, minor, _ := strings.Cut(known.base, "/")
		switch {
		case asked == known && (known.version != "" || known.profile != ""):
			return exactly
		case asked.base == known.base && asked.version == known.version &&
			(asked.profile == "" || asked.profile == known.profile):
			by = max(by, named)
		case asked.base == known.base && asked.version == known.version && known.profile == "",
			asked.base == major+"/*", asked.base == major+"/xml" && strings.HasSuffix(minor, "+xml"):
			by = max(by, anyOf)
		}
	}
	return by
}
