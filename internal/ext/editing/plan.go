package editing

import (
	"bytes"
	"context"
	"net/http"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// topicChange is an entry that a change makes, in words.
type topicChange struct {
	pages.Differences
	Title, SI string
	Kind      history.Kind
}

// The numbers of topics in a plan, and of statements of each.
const (
	mostTopics     = 50
	mostPlanned    = 40 << 10 // bytes of HTML, about
	bytesOfTopic   = 250      // of these, for one without its changes
	mostStatements = 100
)

// planOf puts a change of a state of a collection into words.
func (e *editor) planOf(r *http.Request, col *store.Collection, prior merge.State,
	c *fragment.Change) (p plan, err error) {
	ctx := r.Context()
	p.Empty = c.Empty()
	put := map[fragment.Ref]*fragment.Topic{}
	for _, t := range c.PutTopics {
		put[t.TopicSI()] = t
	}
	listed := c.Entries[:min(len(c.Entries), mostTopics)]
	name := e.naming(r, col, prior, put)
	removed, added := played(listed, c.DeleteAssociations), played(listed, c.PutAssociations)
	in, left := layout.LanguageOf(r), mostPlanned
	for _, entry := range listed {
		change, err := inWords(ctx, in, col.SP, prior, name, &entry, put[entry.TopicSI],
			removed[entry.TopicSI], added[entry.TopicSI])
		if err != nil {
			return p, err
		}
		full := change.Fit(left)
		if p.Changes = append(p.Changes, change); full {
			break
		}
		left -= change.Bytes() + bytesOfTopic
	}
	p.More, p.tag = len(c.Entries)-len(p.Changes), tagOf(c)
	return p, nil
}

// naming calls topics as a change leaves them, or as they are in the state before it. Only those of the state have
// pages.
func (e *editor) naming(r *http.Request, c *store.Collection, prior merge.State,
	put map[fragment.Ref]*fragment.Topic) func(fragment.Ref) (pages.Link, error) {
	known, names := map[fragment.Ref]pages.Link{}, fragment.Names{In: prior, Languages: pages.LanguagesOf(r, c)}
	in := layout.LanguageOf(r)
	return func(ref fragment.Ref) (pages.Link, error) {
		l, ok := known[ref]
		if ok {
			return l, nil
		}
		t, err := prior.Topic(ref)
		if err != nil {
			return l, err
		}
		if t != nil {
			l.URL = e.URLs.Topic(c, t.TopicSI()) + pages.Ending
		}
		if now := put[ref]; now != nil {
			t = now
		}
		l.Title, err = pages.Name(in, &names, t, ref)
		known[ref] = l
		return l, err
	}
}

// played returns the associations that change their players, for the players that are listed.
func played(listed []fragment.Entry, associations []*fragment.Association) map[fragment.Ref][]*fragment.Association {
	byPlayer := map[fragment.Ref][]*fragment.Association{}
	for i := range listed {
		byPlayer[listed[i].TopicSI] = nil
	}
	for _, a := range associations {
		for _, player := range a.Players() {
			if all, ok := byPlayer[player]; ok && a.Part(player) != fragment.AsType {
				byPlayer[player] = append(all, a)
			}
		}
	}
	return byPlayer
}

// tagOf returns a tag that no other change has.
func tagOf(c *fragment.Change) string {
	var b bytes.Buffer
	for _, t := range c.PutTopics {
		b.WriteByte('t')
		b.Write(fragment.MarshalTopic(t))
	}
	for i, list := range [][]*fragment.Association{c.PutAssociations, c.DeleteAssociations} {
		for _, a := range list {
			b.WriteByte("+-"[i])
			b.Write(fragment.MarshalAssociation(a))
		}
	}
	for _, e := range c.Entries {
		b.WriteString("\x00" + string(e.TopicSI))
	}
	return web.Digest(b.Bytes())
}

// inWords describes the differences of a topic. It drops unchanged statements first, because there may be many.
func inWords(
	ctx context.Context, in *texts.Language, sp string, prior merge.State, name func(fragment.Ref) (pages.Link, error),
	entry *fragment.Entry, after *fragment.Topic, removes, adds []*fragment.Association,
) (topicChange, error) {
	self := entry.TopicSI
	change := topicChange{Title: layout.Cut(iri.Shown(entry.Title)), SI: self.String(), Kind: history.Updated}
	called, err := name(self)
	if err != nil {
		return change, err
	}
	if short, _ := layout.Short(in, string(self)); called.Title != short { // it has a name, in the reader's language
		change.Title = called.Title
	}
	before, err := prior.Topic(self)
	if err != nil {
		return change, err
	}
	if before != nil && before.TopicSI() != self {
		before = nil
	}
	switch {
	case entry.Deleted:
		change.Kind, after = history.Deleted, nil
	case before == nil:
		change.Kind = history.Added
	case after == nil:
		after = before
	}
	was, is := sideOf(before, after, removes, self), sideOf(after, before, adds, self)
	removed, added, err := history.InWords(ctx, sp, self, was.fragment, is.fragment)
	if err != nil {
		return change, err
	}
	change.Differences, err = pages.InWords(in, self, added, removed, len(added)+len(removed), name)
	change.More = was.more + is.more
	return change, err
}

// side has the statements about a topic in one of two versions alone.
type side struct {
	fragment *fragment.Fragment // nil: the topic is not there
	more     int                // statements that it leaves out
}

// sideOf returns the statements of one version of a topic that the other lacks, with those among the associations in
// which the topic plays a role.
func sideOf(topic, other *fragment.Topic, associations []*fragment.Association, self fragment.Ref) side {
	if topic == nil {
		return side{}
	}
	if other == nil {
		other = &fragment.Topic{}
	}
	s := side{fragment: &fragment.Fragment{TopicSI: self, Topic: &fragment.Topic{Identity: topic.Identity}}}
	left := mostStatements
	s.fragment.Topic.Names = only(&s, &left, topic.Names, other.Names, func(n fragment.Name) *fragment.Topic {
		return &fragment.Topic{Identity: topic.Identity, Names: []fragment.Name{n}}
	})
	s.fragment.Topic.Occurrences = only(&s, &left, topic.Occurrences, other.Occurrences,
		func(o fragment.Occurrence) *fragment.Topic {
			return &fragment.Topic{Identity: topic.Identity, Occurrences: []fragment.Occurrence{o}}
		})
	shown := min(len(associations), left)
	s.fragment.Associations = associations[:shown]
	s.more += len(associations) - shown
	return s
}

// only returns the first statements of a list that another one lacks. It compares them as records.
func only[T any](s *side, left *int, list, other []T, record func(T) *fragment.Topic) (some []T) {
	known := make(map[string]bool, len(other))
	for _, o := range other {
		known[string(fragment.MarshalTopic(record(o)))] = true
	}
	for _, one := range list {
		switch {
		case known[string(fragment.MarshalTopic(record(one)))]:
		case *left <= 0:
			s.more++
		default:
			some = append(some, one)
			*left--
		}
	}
	return some
}
