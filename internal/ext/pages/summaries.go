package pages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
)

// summaries describes the changes of entries in feeds. It caches them, because they depend only on the states around
// their commits, and a feed repeats most of its entries after each change. It is safe for concurrent use.
type summaries struct{ recent[summarized, string] }

// summarized is an entry, in the language in which feeds call topics.
type summarized struct {
	epoch    uuid.UUID
	seq      uint64
	run      uint32
	language string
}

// The limits of a summary.
const (
	mostSummarized = 100   // entries of a commit that are described in detail
	mostInSummary  = 3     // statements of each kind
	longestSaid    = 150   // characters of a value, or a name
	mostSummaries  = 2_000 // that are remembered
)

// entries returns the descriptions of some entries, the newest first.
func (s *summaries) entries(v *store.View, entries []store.Entry) ([]string, error) {
	all := make([]string, len(entries))
	if v.Replica != nil { // it may lack the state before, and the texts must not differ from the origin's
		return all, nil
	}
	var lacking [][2]int // those of one commit, or each alone where it is read together with the others
	for from, to := 0, 0; from < len(entries); from = to {
		for to = from + 1; to < len(entries) && entries[to].Commit == entries[from].Commit && !v.Tx().Distant(); {
			to++
		}
		if !s.recall(v, entries[from:to], all[from:to]) {
			lacking = append(lacking, [2]int{from, to})
		}
	}
	return all, v.Together(len(lacking), func(i int, v *store.View) error {
		from, to := lacking[i][0], lacking[i][1]
		err := summarize(v, entries[from:to], all[from:to])
		for i := from; i < to && err == nil; i++ {
			s.put(keyOfSummary(v, &entries[i]), all[i], mostSummaries)
		}
		return err
	})
}

func keyOfSummary(v *store.View, e *store.Entry) summarized {
	return summarized{v.Epoch, e.Seq, e.Run, strings.Join(v.Languages(), " ")}
}

// recall sets the cached descriptions of entries, and reports whether all were cached.
func (s *summaries) recall(v *store.View, entries []store.Entry, all []string) (known bool) {
	for i := range entries {
		if all[i], known = s.get(keyOfSummary(v, &entries[i])); !known {
			return false
		}
	}
	return true
}

// summarize describes some entries of a commit. Topics have the names that they had after it.
func summarize(v *store.View, entries []store.Entry, all []string) error {
	last := entries[0].Seq
	before, err := history.BeforeCommit(v, last)
	if errors.Is(err, store.ErrGone) || entries[0].Commit == 0 { // the state before is pruned
		return nil
	}
	if err != nil {
		return err
	}
	if n := entries[0].Commit - before.Seq; n > mostSummarized {
		for i := range all {
			all[i] = fmt.Sprintf(texts.OneOfMany, texts.English.Count(int(n)))
		}
		return nil
	}
	list, err := history.Changes(v.Context(), v, history.Query{Before: last + 1, Limit: len(entries), Words: true})
	if err != nil {
		return err
	}
	t, err := tellerOf(v, last)
	if err != nil {
		return err
	}
	for i := range list.Changes {
		if c := &list.Changes[i]; c.Missing == "" {
			if all[i], err = t.summary(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// teller puts changes into sentences. Topics have the names that they had after a commit; deleted ones those that they
// had before it.
type teller struct{ *nodes.Reader }

func tellerOf(v *store.View, seq uint64) (t teller, err error) {
	after, err := v.Past(seq)
	if err != nil {
		return t, err
	}
	states := []fragment.Lookup{after}
	if before, err := v.PastBefore(seq); err == nil {
		states = append(states, before)
	} else if !errors.Is(err, store.ErrGone) {
		return t, err
	}
	return teller{nodes.NewReader(nodes.SourceOf(v.Languages(), states...))}, nil
}

func (t teller) summary(c *history.Change) (string, error) {
	switch c.Kind {
	case history.Deleted:
		return texts.WasDeleted, nil
	case history.Moved:
		return texts.HasMoved, nil
	}
	pairs, added, removed := pair(c.Added, c.Removed)
	isNew := texts.IsNew
	if c.Kind == history.Added { // its name tells more than its identifiers
		isNew = texts.WasAdded
		slices.SortStableFunc(added, func(a, b mapdiff.Statement) int {
			return cmp.Compare(identifies(&a), identifies(&b))
		})
	}
	var all []string
	for _, kind := range []struct {
		what  string
		pairs []turned
	}{{texts.HasChanged, pairs}, {isNew, alone(added)}, {texts.IsGone, alone(removed)}} {
		var sentences []string
		for i, p := range kind.pairs {
			if i == mostInSummary {
				sentences = append(sentences, fmt.Sprintf(texts.AndMoreChanges, texts.English.Count(len(kind.pairs)-i)))
				break
			}
			one, err := t.say(&p, fragment.Ref(c.TopicSI))
			if err != nil {
				return "", err
			}
			sentences = append(sentences, one)
		}
		if len(sentences) > 0 {
			all = append(all, kind.what+": "+strings.Join(sentences, "; ")+".")
		}
	}
	return strings.Join(all, " "), nil
}

func identifies(s *mapdiff.Statement) int {
	if s.Kind == mapdiff.SubjectIdentifier || s.Kind == mapdiff.SubjectLocator {
		return 1
	}
	return 0
}

// alone returns the statements that replace no earlier ones. It never shows labels of blank nodes.
func alone(list []mapdiff.Statement) (all []turned) {
	for _, s := range list {
		if s.Kind != mapdiff.SubjectIdentifier || !words.IsOpaque(s.Parts[len(s.Parts)-1].Text) {
			all = append(all, turned{is: s})
		}
	}
	return all
}

// say puts a statement of a topic into words.
func (t teller) say(s *turned, self fragment.Ref) (string, error) {
	both, err := Statements(texts.English, self, []mapdiff.Statement{s.is, s.was}, func(ref fragment.Ref) (Link, error) {
		title, err := t.Title(ref)
		return Link{Title: title}, err
	})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, p := range both[0].since(both[1]) {
		text := titles.Closed(titles.Cut(p.Text, longestSaid))
		switch {
		case p.Was != "":
			text = fmt.Sprintf(texts.WasAndIs, titles.Closed(titles.Cut(p.Was, longestSaid)), text)
		case p.Value:
			text = fmt.Sprintf(texts.Quoted, text)
		case p.Kind:
			if s.is.Kind == mapdiff.Association && relationCalled(s.is.Parts[1].Identifier, false) != "" {
				text = strings.ToLower(text[:1]) + text[1:]
			}
			text += " "
		}
		all.WriteString(text)
	}
	return all.String(), nil
}
