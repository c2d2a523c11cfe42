package store

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/replicas"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

// Entries have no stored content. Their fragments, and the record forms of their topics, are written on request from
// the records after their commits.

// WriteFragment writes the fragment of an entry: the topic after the commit of the entry, or the identifiers of a
// deleted topic. If that is not known, the error is ErrGone.
func (v *View) WriteFragment(w io.Writer, e *Entry, version xtm.Version) error {
	return v.writeShown(w, e, v.Form(e, version))
}

// WriteRecord writes the record form of the topic of an entry. Of one that deletes it is the fragment. Until the next
// entry of the topic the bytes are always the same. The errors are those of WriteFragment.
func (v *View) WriteRecord(w io.Writer, e *Entry, version xtm.Version) error {
	return v.writeShown(w, e, fragment.Form{Version: version, SP: v.SP, OmitInstances: true, ContentOnly: true})
}

func (v *View) writeShown(w io.Writer, e *Entry, form fragment.Form) error {
	if e.Deleted {
		return fragment.WriteTombstone(w, e.Deletes(), form)
	}
	then, t, err := v.Shown(e)
	if err != nil {
		return err
	}
	if c, ok := then.(*records.Cached); ok && v.tx.Distant() && !form.ContentOnly {
		var mentioned []fragment.Ref
		t.Mentions(func(ref fragment.Ref) { mentioned = append(mentioned, ref) })
		if err := c.ExpectNames(mentioned); err != nil {
			return err
		}
		then = withStubs{c}
	}
	return fragment.Write(w, then, t.TopicSI(), form)
}

// withStubs are records for writing a fragment: they prefetch the topics that associations mention.
type withStubs struct{ *records.Cached }

// AssociationsOf implements [fragment.Source].
func (s withStubs) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return records.InParts(s.Cached.AssociationsOf(player, part),
		func(some []*fragment.Association) bool { return len(some) == txn.FewRows },
		func(some []*fragment.Association) error {
			var mentioned []fragment.Ref
			for _, a := range some {
				mentioned = append(mentioned, a.Players()...)
				a.Mentions(func(ref fragment.Ref) { mentioned = append(mentioned, ref) })
			}
			return s.ExpectNames(mentioned)
		})
}

// Shown returns the records as an entry shows them, and its topic in them. It is ErrGone where the topic is not there.
func (v *View) Shown(e *Entry) (then fragment.Source, t *fragment.Topic, err error) {
	if then, err = v.then(e); err == nil {
		t, err = then.Topic(e.TopicSI)
	}
	if t == nil && err == nil {
		err = fmt.Errorf("%w: topic %s has a later entry", ErrGone, e.TopicSI)
	}
	return then, t, err
}

// then returns the records as an entry shows them: as they were after its commit. An entry that [View.ShowsNow] shows
// them as they are.
func (v *View) then(e *Entry) (fragment.Source, error) {
	switch {
	case e.Kept:
		row, err := v.tx.Get(v.Log().Numbered(keys.TableFragment, e.Seq))
		if err == nil && row == nil {
			err = fmt.Errorf("%w: fragment of entry %d of collection %q", ErrGone, e.Seq, v.Name)
		}
		if err != nil {
			return nil, err
		}
		return replicas.Shown(v.Context(), &v.Collection, e, row)
	case v.ShowsNow(e):
		return v.State(), nil
	}
	commit, err := v.CommitOf(e.Seq)
	if err != nil || v.shown != nil && v.shownOf == commit {
		return v.shown, err
	}
	state, err := v.after(e.Seq, commit)
	if err != nil {
		return nil, err
	}
	v.shown, v.shownOf = records.Cache(state), commit // entries of one commit mention the same topics
	return v.shown, nil
}

// ShowsNow reports whether an entry shows the present topic instead of that after its commit: it is kept before the
// horizon as the last of its topic, or a replica has no such state.
func (v *View) ShowsNow(e *Entry) bool {
	return !e.Kept && (e.Late || !e.Deleted && (e.Seq <= v.Horizon || v.Replica != nil && e.Seq <= v.Remembered))
}

// SetTitle sets the title of an entry without a stored one: that of the topic in the entry's state. With languages, the
// best first, it also replaces stored titles of existing topics.
func (v *View) SetTitle(e *Entry, languages ...string) error {
	if !e.Untitled && (len(languages) == 0 || e.Kept || !e.Lives()) {
		return nil
	}
	if len(languages) == 0 {
		languages = v.FirstLanguages()
	}
	state, err := v.stateOf(e)
	if errors.Is(err, ErrGone) && !e.Untitled {
		return nil
	}
	if err != nil {
		return err
	}
	title, err := state.Title(e.TopicSI, languages...)
	e.SetTitle(title)
	return err
}

// titling are records, decoded or not.
type titling interface {
	Title(topicSI fragment.Ref, languages ...string) (string, error)
	Titles(languages ...string) *records.Titles
}

// stateOf returns the records in the state of an entry without its own fragment.
func (v *View) stateOf(e *Entry) (titling, error) {
	then, err := v.then(e)
	if err != nil {
		return nil, err
	}
	return then.(titling), nil
}

// titled sets the titles of entries.
func (v *View) titled(entries iter.Seq2[Entry, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var titles *records.Titles
		now := false // titles are those of present topics; entries before the horizon come first
		defer func() { titles.Close() }()
		for e, err := range entries {
			if err == nil && e.Untitled {
				if titles == nil || now != v.ShowsNow(&e) {
					var state titling
					if state, err = v.stateOf(&e); err == nil {
						titles.Close()
						titles, now = state.Titles(v.FirstLanguages()...), v.ShowsNow(&e)
					}
				}
				var title string
				if err == nil {
					title, err = titles.Of(e.TopicSI)
				}
				e.SetTitle(title)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
