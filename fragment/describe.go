package fragment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// Describe returns the statements of a source about the topic with a TopicSI: a line for each identifier, statement and
// association, for people to compare. It returns no lines if the topic does not exist.
func Describe(src Source, ref Ref) ([]string, error) {
	t, err := src.Topic(ref)
	if t == nil || err != nil {
		return nil, err
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if t.TopicSI() != ref {
		add("is an identifier of topic %s", t.TopicSI())
	} else {
		describeTopic(t, add)
	}
	for _, part := range []Part{AsInstance, AsPlayer} {
		for a, err := range src.AssociationsOf(ref, part) {
			if err != nil {
				return nil, err
			}
			if class, _, ok := a.TypeInstance(); ok {
				add("instance of %s", class)
				continue
			}
			roles := make([]string, len(a.Roles))
			for i := range a.Roles {
				r := &a.Roles[i]
				roles[i] = fmt.Sprintf("%s: %s%s", r.Type, r.Player, reified(r.Reifier))
			}
			add("association %s (%s)%s%s", a.Type, strings.Join(roles, ", "), scoped(a.Scope), reified(a.Reifier))
		}
	}
	return lines, nil
}

func describeTopic(t *Topic, add func(string, ...any)) {
	for _, si := range t.SubjectIdentifiers {
		add("subject identifier %s", si)
	}
	for _, sl := range t.SubjectLocators {
		add("subject locator %s", sl)
	}
	for i := range t.Names {
		n := &t.Names[i]
		add("name %q%s%s%s", n.Value, typed(n.Type, tmdm.PSIDefaultNameType), scoped(n.Scope), reified(n.Reifier))
		for j := range n.Variants {
			v := &n.Variants[j]
			add("variant %q of name %q%s%s%s", v.Value, n.Value, typed(v.Datatype, tmdm.XSDString), scoped(v.Scope),
				reified(v.Reifier))
		}
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		add("occurrence %q of type %s%s%s%s", o.Value, o.Type, typed(o.Datatype, tmdm.XSDString), scoped(o.Scope),
			reified(o.Reifier))
	}
}

func typed[T ~string](value, usual T) string {
	if value == usual {
		return ""
	}
	return fmt.Sprintf(" (%s)", value)
}

func scoped(scope []Ref) string {
	if len(scope) == 0 {
		return ""
	}
	themes := texts(scope)
	slices.Sort(themes)
	return " in scope " + strings.Join(themes, ", ")
}

func reified(reifier Ref) string {
	if reifier == "" {
		return ""
	}
	return fmt.Sprintf(" reified by %s", reifier)
}
