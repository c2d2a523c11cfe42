// Package changes is the extension that writes the changes of a collection or a subscription as lines of JSON, for
// search indexes, version control, spreadsheets. docs/changes.md describes them.
package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// Line is one line of the output: a change of a topic.
type Line struct {
	Position string    `json:"position"` // where to go on behind it
	Kind     Kind      `json:"kind"`
	Time     time.Time `json:"time,omitzero"` // of the change; not known of subscriptions
	Author   string    `json:"author,omitempty"`
	Note     string    `json:"note,omitempty"`
	Topic    string    `json:"topic,omitempty"` // its TopicSI
	Title    string    `json:"title,omitempty"` // after the change, or before it for a topic that is gone
	Before   *State    `json:"before,omitempty"`
	After    *State    `json:"after,omitempty"`
	// Removed and Added are the removed and the added RDF statements about the topic (N-Triples).
	Removed []string `json:"removed,omitempty"`
	Added   []string `json:"added,omitempty"`
}

// Kind is the kind of a change of a topic.
type Kind string

// The kinds of lines. Reset means that the changes do not continue from the given position: readers drop their state,
// and all topics follow as Present.
const (
	Added   Kind = "added"
	Changed Kind = "changed"
	Deleted Kind = "deleted"
	Reset   Kind = "reset"
	Present Kind = "present"
)

// State holds the topic's own statements. Its relations are among Statements.
type State struct {
	Identifiers []string `json:"identifiers"`
	Locators    []string `json:"locators,omitempty"`
	Names       []Value  `json:"names,omitempty"`
	Occurrences []Value  `json:"occurrences,omitempty"`
}

// Value is a name or an occurrence.
type Value struct {
	Value    string   `json:"value"`
	Type     string   `json:"type,omitempty"` // not of a name of the default type
	Datatype string   `json:"datatype,omitempty"`
	Language string   `json:"language,omitempty"`
	Scope    []string `json:"scope,omitempty"` // the themes that are no language
}

func stateOf(t *fragment.Topic) *State {
	s := &State{Identifiers: shown(t.SubjectIdentifiers), Locators: shown(t.SubjectLocators)}
	for i := range t.Names {
		n := &t.Names[i]
		v := Value{Value: n.Value, Type: iri.Shown(string(n.Type))}
		if n.Type == tmdm.PSIDefaultNameType {
			v.Type = ""
		}
		s.Names = append(s.Names, v.within(n.Scope))
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		v := Value{Value: o.Value, Type: iri.Shown(string(o.Type)), Datatype: o.Datatype}
		if v.Datatype == tmdm.XSDString {
			v.Datatype = ""
		}
		s.Occurrences = append(s.Occurrences, v.within(o.Scope))
	}
	return s
}

// within returns a value with its scope. A theme that is a language is one.
func (v Value) within(scope []fragment.Ref) Value {
	for _, theme := range scope {
		if tag, ok := titles.LanguageOf(theme); ok && v.Language == "" {
			v.Language = tag.String()
			continue
		}
		v.Scope = append(v.Scope, iri.Shown(string(theme)))
	}
	return v
}

func shown(all []fragment.Ref) (texts []string) {
	for _, l := range all {
		texts = append(texts, iri.Shown(string(l)))
	}
	return texts
}

// statements returns the RDF statements of a fragment about its topic, by line.
func statements(sp string, f *fragment.Fragment) (all map[string]bool, err error) {
	all = map[string]bool{}
	if f == nil {
		return all, nil
	}
	r := mapping.NewRecords(sp, func(q rdf.Quad) error {
		all[strings.TrimSuffix(turtle.Line(q), "\n")] = true
		return nil
	})
	r.Skolem = true
	err = r.Record(&fragment.Record{Topic: f.Topic})
	for _, a := range f.Associations {
		subject := mapping.Subject(a)
		if err == nil && (subject == f.Topic.TopicSI() || subject == "" && a.Players()[0] == f.Topic.TopicSI()) {
			err = r.Record(&fragment.Record{Association: a})
		}
	}
	return all, err
}

// position is the place up to which a program has read.
type position struct {
	history string // of the source, in short
	commit  uint64
	topics  int // that were sent of the next commit, or of the whole state
	whole   bool
}

// historyOf returns the history of a source in short.
func historyOf(history string) string {
	sum := sha256.Sum256([]byte(history))
	return hex.EncodeToString(sum[:6])
}

// String returns the text that people and programs see. It has no meaning to them.
func (p position) String() string {
	text := fmt.Sprintf("%s.%d", p.history, p.commit)
	if p.whole {
		return fmt.Sprintf("%s.w%d", text, p.topics)
	}
	if p.topics > 0 {
		text += fmt.Sprintf(".%d", p.topics)
	}
	return text
}

func parsePosition(text string) (p position, err error) {
	parts := strings.Split(text, ".")
	ok := len(parts) == 2 || len(parts) == 3
	if ok {
		p.history = parts[0]
		p.commit, err = strconv.ParseUint(parts[1], 10, 64)
	}
	if ok && err == nil && len(parts) == 3 {
		p.topics, err = strconv.Atoi(strings.TrimPrefix(parts[2], "w"))
		p.whole = strings.HasPrefix(parts[2], "w")
	}
	if !ok || err != nil || p.topics < 0 {
		return p, cli.UsageError(fmt.Errorf("%q is no position: give one that a line had, or beginning or now", text))
	}
	return p, nil
}
