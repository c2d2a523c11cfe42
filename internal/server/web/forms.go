package web

import (
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Form is what an answer can have: a media type, and perhaps an address that offers it alone.
type Form struct {
	Ending    string      // of that address; "": there is none
	MediaType string      // of answers
	known     []knownType // by which requests name it
}

// knownType is a media type. Of the parameters, the version and the profile alone tell forms apart.
type knownType struct{ base, version, profile string }

// NewForm makes a form of the media types by which requests name it. Answers bear the first. ending is that of the
// address that offers it alone, "" for none.
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

// Choose returns which of the forms of a thing a request asks for, the first where several are equally welcome, and
// says in the header of the answer that it is that. Conditions, codings and ranges are up to what the answer is written
// with: [Answers] or [WriteKept].
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

// WithEndings is the part of a route that names a form by its ending, or none.
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

// negotiate chooses a form by the ending of the URL, else by the Accept header (RFC 9110 §12.5.1, Accept): the most
// welcome one. Of equally welcome forms it chooses one that is named, else the first.
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

// NeverOffered says that a form was never there.
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

// within returns how specifically a media range includes the form, 0 if it does not. A range without a profile includes
// all profiles, and what has none is within ranges of any.
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
