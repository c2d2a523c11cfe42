package history

import (
	"bytes"
	"context"
	"iter"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
)

// between compares two states, of which it is known which commits lie between them.
type between struct {
	source        Changed
	sp            string
	before, after records.State
	later         bool              // the state after is known
	names         [2]fragment.Names // before and after
	languages     titles.Languages  // in which topics are called: those of the reader, and then that of the map
}

// Changed is a source with known changes of its commits: a view of a collection, or the source of a consumer.
type Changed interface {
	Changed(after, upTo uint64) iter.Seq2[[]byte, error]
}

// commit compares the states before and after the commit of an entry, for a reader of some languages.
func commit(v *store.View, seq uint64, languages ...string) (b between, err error) {
	b.source, b.sp, b.languages = v, v.SP, slices.Concat(languages, v.Languages())
	if b.after, err = v.Past(seq); err == nil {
		b.later = true
		b.before, err = v.PastBefore(seq)
	}
	return b, err
}

// states compares two states, the older one first, for a reader of some languages.
func states(v *store.View, from, to Moment, languages []string) (b between, err error) {
	b.source, b.sp, b.later, b.languages = v, v.SP, true, slices.Concat(languages, v.Languages())
	if b.before, err = v.Past(from.Seq); err == nil {
		b.after, err = v.Past(to.Seq)
	}
	for i, in := range []fragment.Lookup{b.before, b.after} {
		b.names[i] = fragment.Names{In: in, Languages: b.languages}
	}
	return b, err
}

// rows calls f with the records' rows that commits after one, up to another, have changed: with each topic that a row
// is about, and the key of the row with that. Instances of a class are not about the class. A row can come more than
// once.
func (b *between) rows(after, upTo uint64, f func(about fragment.Ref, key []byte) error) error {
	for key, err := range b.source.Changed(after, upTo) {
		if err != nil {
			return err
		}
		if ref, ok := records.TopicOf(key); ok {
			if err := f(ref, key); err != nil {
				return err
			}
		}
		player, part, ok := records.Playing(key)
		if !ok || part == fragment.AsType {
			continue
		}
		if err := f(player, key); err != nil {
			return err
		}
		if err := b.others(player, key, f); err != nil {
			return err
		}
	}
	return nil
}

// others calls f for the other players of a large association, whose rows have only the place of the record.
func (b *between) others(player fragment.Ref, key []byte, f func(about fragment.Ref, key []byte) error) error {
	r, err := b.after.RecordAt(key)
	if err == nil && r.Association == nil {
		r, err = b.before.RecordAt(key)
	}
	a := r.Association
	if a == nil || err != nil {
		return err
	}
	players := a.Players()
	if len(players) <= records.InlinePlayers || players[0] != player {
		return nil
	}
	for _, p := range players[1:] {
		if a.Part(p) != fragment.AsType {
			if err := f(p, b.after.RowOf(a, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// topics returns the changed parts of a topic, before and after, by the keys of the rows about it; nil for a state
// without the topic. An added or removed topic has all its statements.
func (b *between) topics(ref fragment.Ref, rows [][]byte) (before, after *fragment.Fragment, err error) {
	was, err := topicOf(b.before, ref)
	if err != nil {
		return nil, nil, err
	}
	is, err := topicOf(b.after, ref)
	switch {
	case err != nil || was == nil && is == nil:
		return nil, nil, err
	case was == nil:
		after, err = fragmentThen(b.after, is)
		return nil, after, err
	case is == nil:
		before, err = fragmentThen(b.before, was)
		return before, nil, err
	}
	before, after = &fragment.Fragment{TopicSI: ref, Topic: was}, &fragment.Fragment{TopicSI: ref, Topic: is}
	for _, key := range rows {
		if _, _, ok := records.Playing(key); !ok {
			continue
		}
		for _, side := range []struct {
			in       records.State
			fragment *fragment.Fragment
		}{{b.before, before}, {b.after, after}} {
			r, err := side.in.RecordAt(key)
			if err != nil {
				return nil, nil, err
			}
			if r.Association != nil {
				side.fragment.Associations = append(side.fragment.Associations, r.Association)
			}
		}
	}
	return before, after, nil
}

// sortMemory is the number of bytes of rows that are sorted in memory; more are sorted in files.
const sortMemory = 8 << 20

// Differences iterates over the topics that differ between two states, the older one first, by TopicSI: over those
// after behind, unless that is "". scratch is a folder for files. Titles are in the first available of some languages,
// the best first, or in that of the map.
func Differences(ctx context.Context, v *store.View, scratch string, from, to Moment, behind fragment.Ref,
	languages ...string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if err := differences(ctx, v, scratch, from, to, behind, languages,
			func(c Change) bool { return yield(c, nil) }); err != nil {
			yield(Change{}, err)
		}
	}
}

// Difference returns how a topic differs between two states, the older one first. It is a change of no kind if the
// topic does not. Topics are called as in [Differences].
func Difference(ctx context.Context, v *store.View, ref fragment.Ref, from, to Moment,
	languages ...string) (c Change, err error) {
	b, err := states(v, from, to, languages)
	if err != nil {
		return c, err
	}
	for _, then := range []records.State{b.before, b.after} {
		if t, err := topicOf(then, ref); err != nil {
			return c, err
		} else if t == nil { // all its statements were added, or removed
			return b.change(ctx, ref, nil)
		}
	}
	var rows [][]byte
	seen := to.Seq + 1 // the commit that was looked at last, the newest first
	for e, err := range entries(v, &Query{TopicSI: ref, Before: to.Seq + 1}) {
		if err != nil {
			return c, err
		}
		if e.Seq <= from.Seq {
			break
		}
		commit, err := v.CommitOf(e.Seq)
		if err != nil {
			return c, err
		}
		if commit == seen {
			continue
		}
		seen = commit
		if err := b.rows(commit-1, commit, func(about fragment.Ref, key []byte) error {
			if about == ref {
				rows = append(rows, bytes.Clone(key))
			}
			return nil
		}); err != nil {
			return c, err
		}
	}
	slices.SortFunc(rows, bytes.Compare)
	return b.change(ctx, ref, slices.CompactFunc(rows, bytes.Equal))
}

func differences(ctx context.Context, v *store.View, scratch string, from, to Moment, behind fragment.Ref,
	languages []string, yield func(Change) bool) (err error) {
	b, err := states(v, from, to, languages)
	if err != nil {
		return err
	}
	return b.each(scratch, from.Seq, to.Seq, behind, func(ref fragment.Ref, rows [][]byte) (more bool, err error) {
		c, err := b.change(ctx, ref, rows)
		return err == nil && (c.Kind == "" || yield(c)), err
	})
}

// Topic is how a topic was before some commits, and how it is after them. Where it is nil, the topic was not there, or
// is not. Where both are there, they have those associations alone that differ.
type Topic struct {
	TopicSI       fragment.Ref
	Before, After *fragment.Fragment
}

// Topics iterates over the topics changed by commits of a source after one, up to another, by TopicSI. before and after
// are the states. scratch is a folder for files.
func Topics(source Changed, before, after records.State, scratch string, from, to uint64) iter.Seq2[Topic, error] {
	return func(yield func(Topic, error) bool) {
		b := between{source: source, before: before, after: after, later: true}
		if err := b.each(scratch, from, to, "", func(ref fragment.Ref, rows [][]byte) (more bool, err error) {
			was, is, err := b.topics(ref, rows)
			return err == nil && (was == nil && is == nil || yield(Topic{ref, was, is}, nil)), err
		}); err != nil {
			yield(Topic{}, err)
		}
	}
}

// each calls f with the topics that commits have changed, after one, each with its rows, until f stops.
func (b *between) each(scratch string, from, to uint64, behind fragment.Ref,
	f func(ref fragment.Ref, rows [][]byte) (more bool, err error)) error {
	changed := &extsort.Sorter{Path: filepath.Join(scratch, "past-"+uuid.NewString()), Most: sortMemory}
	defer changed.Close() // the next opening of the store removes the rest
	if err := b.rows(from, to, func(about fragment.Ref, key []byte) error {
		if about <= behind && behind != "" {
			return nil
		}
		return changed.Add(append(append([]byte(about), 0), key...), nil)
	}); err != nil {
		return err
	}
	var rows [][]byte
	var about []byte
	more := true
	compare := func() (err error) {
		if len(rows) > 0 {
			more, err = f(fragment.Ref(about), rows)
		}
		rows = rows[:0]
		return err
	}
	for r, err := range changed.Sorted() {
		if err != nil {
			return err
		}
		ref, key, _ := bytes.Cut(r.Key, []byte{0})
		if !bytes.Equal(ref, about) {
			if err := compare(); err != nil || !more {
				return err
			}
			about = bytes.Clone(ref)
		}
		if len(rows) == 0 || !bytes.Equal(rows[len(rows)-1], key) {
			rows = append(rows, bytes.Clone(key))
		}
	}
	return compare()
}

// change returns how a topic differs, by the keys of the rows about it; a change of no kind if it does not.
func (b *between) change(ctx context.Context, ref fragment.Ref, rows [][]byte) (c Change, err error) {
	before, after, err := b.topics(ref, rows)
	if before == nil && after == nil || err != nil {
		return c, err
	}
	c = Change{TopicSI: string(ref), Kind: Updated}
	switch {
	case before == nil:
		c.Kind = Added
	case after == nil:
		c.Kind = Deleted
		if owner, err := b.after.Topic(ref); err != nil {
			return c, err
		} else if owner != nil {
			c.Kind, c.Topic = Moved, string(owner.TopicSI())
		}
	}
	names, source := &b.names[1], after
	if after == nil {
		names, source = &b.names[0], before
	}
	if c.Title, err = names.Title(source.Topic); err != nil {
		return c, err
	}
	if err = b.inWords(ctx, &c, ref, before, after); err != nil {
		return c, err
	}
	if len(c.Removed)+len(c.Added) == 0 {
		c = Change{}
	}
	return c, nil
}

// inWords describes the differences in a change, with terms in words, and nodes without a name by their statements.
func (b *between) inWords(ctx context.Context, c *Change, ref fragment.Ref, before,
	after *fragment.Fragment) (err error) {
	if c.Removed, c.Added, err = InWords(ctx, b.sp, ref, before, after); err != nil {
		return err
	}
	var states []fragment.Lookup
	if b.later {
		states = append(states, b.after)
		if before != nil {
			states = append(states, b.before)
		}
	}
	r := nodes.NewReader(nodes.SourceOf(b.languages, states...))
	call := func(ref fragment.Ref) (string, error) {
		if words.IsOpaque(string(ref)) || words.Word(string(ref)) != "" {
			return r.Title(ref)
		}
		return "", nil
	}
	if c.Removed, err = mapdiff.Call(c.Removed, call); err == nil {
		c.Added, err = mapdiff.Call(c.Added, call)
	}
	if err == nil && words.IsOpaque(string(ref)) {
		c.Title, err = r.Title(ref)
	}
	return err
}
