package merge_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// elements returns the fragments of topics, as elements of one document.
func elements(t testing.TB, src fragment.Source, form fragment.Form, topics []fragment.Ref) (all []xtm.Element) {
	for _, ref := range topics {
		var b bytes.Buffer
		require.NoError(t, fragment.Write(&b, src, ref, form))
		dec := xtm.NewDecoder(&b, xtm.Options{Base: tmdm.Locator(form.SP)})
		for {
			e, err := dec.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			all = append(all, e)
		}
	}
	return all
}

// document writes elements and reads them as a posted document.
func document(t testing.TB, all []xtm.Element, form fragment.Form) (*tmdm.TopicMap, string) {
	var b bytes.Buffer
	enc := xtm.NewEncoder(&b, form.Version, tmdm.Locator(form.SP))
	for _, e := range all {
		switch e := e.(type) {
		case *xtm.Topic:
			require.NoError(t, enc.Topic(e))
		case *xtm.Association:
			require.NoError(t, enc.Association(e))
		}
	}
	require.NoError(t, enc.Close())
	text := b.String()
	tm, err := xtm.Read(t.Context(), &b, xtm.Options{Base: tmdm.Locator(form.SP)})
	require.NoError(t, err, "%s", text)
	return tm, text
}

// next makes random edits of a map and returns it as it would be published, with the changes.
func (p *publisher) next(editor *testedit.Editor, edits int) (*fragment.Map, *fragment.Change) {
	for range edits {
		p.edits = append(p.edits, editor.Edit())
	}
	var b bytes.Buffer
	_, err := xtm.Write(&b, editor.Map, xtm.WriteOptions{Version: xtm.V21, Base: p.options().Base})
	require.NoError(p.t, err)
	tm, err := xtm.Read(p.t.Context(), &b, p.options())
	require.NoError(p.t, err)
	m, err := fragment.NameTopics(p.t.Context(), tm, p.prefix(), &p.state)
	require.NoError(p.t, err)
	change, err := fragment.Diff(p.t.Context(), &p.state, m)
	require.NoError(p.t, err)
	return m, change
}

// edited returns the topics that a change leaves behind changed.
func edited(c *fragment.Change) (refs []fragment.Ref) {
	for _, e := range c.Entries {
		if !e.Deleted && !slices.Contains(refs, e.Topic) {
			refs = append(refs, e.Topic)
		}
	}
	return refs
}

// reachable reports whether posting can bring about the change: each topic that
// goes has left an identifier to another, and none has lost one that it was
// assigned. To delete a topic is another request.
func (p *publisher) reachable(c *fragment.Change, next *fragment.Map) bool {
	for _, ref := range c.DeleteTopics {
		was, err := p.state.Topic(ref)
		require.NoError(p.t, err)
		left := false
		for _, si := range was.SubjectIdentifiers {
			now, err := next.Topic(si)
			require.NoError(p.t, err)
			left = left || now != nil
			if now == nil && strings.HasPrefix(string(si), sp+"topic/") {
				return false
			}
		}
		if !left {
			return false
		}
	}
	return true
}

func clone(t testing.TB, s *merge.Memory) *merge.Memory {
	var c merge.Memory
	require.NoError(t, c.Load(s))
	return &c
}

// whole checks that a state is one that a publisher can have: no identifier has
// two topics, each reference is the TopicSI of a topic, and the map can be read
// strictly and published again without a change.
func (p *publisher) whole() {
	refers := func(ref fragment.Ref) {
		topic, err := p.state.Topic(ref)
		require.NoError(p.t, err)
		require.NotNil(p.t, topic, "nothing has the identifier %s", ref)
		require.Equal(p.t, ref, topic.TopicSI())
	}
	seen := [2]map[tmdm.Locator]bool{{}, {}}
	for topic, err := range p.state.Topics() {
		require.NoError(p.t, err)
		for i, list := range [][]tmdm.Locator{topic.SubjectIdentifiers, topic.SubjectLocators} {
			for _, l := range list {
				require.False(p.t, seen[i][l], "two topics have %s", l)
				seen[i][l] = true
			}
		}
		topic.Mentions(refers)
	}
	for a, err := range p.state.Associations() {
		require.NoError(p.t, err)
		a.Mentions(refers)
		for _, player := range a.Players() {
			refers(player)
		}
	}
	var b bytes.Buffer
	require.NoError(p.t, fragment.WriteSnapshot(&b, &p.state, fragment.Form{Version: xtm.V21, SP: p.prefix()}))
	tm, err := xtm.Read(p.t.Context(), &b, p.options())
	require.NoError(p.t, err)
	m, err := fragment.NameTopics(p.t.Context(), tm, p.prefix(), &p.state)
	require.NoError(p.t, err)
	c, err := fragment.Diff(p.t.Context(), &p.state, m)
	require.NoError(p.t, err)
	require.Empty(p.t, c.Entries, "the map as it is served, published again:\n%s\n---\n%s", dump(p.t, &p.state), dump(p.t, m))
}

func (p *publisher) logEdits() {
	if p.t.Failed() {
		p.t.Logf("edits:\n%s", strings.Join(p.edits, "\n"))
	}
}

// TestPostedTopicsAreWhatAWholeVersionWouldMakeThem edits a map at random and posts
// the fragments of the topics that have changed: that makes the records and the
// entries that the whole edited map would have made, and a subscriber that applies
// the entries has the server's state.
func TestPostedTopicsAreWhatAWholeVersionWouldMakeThem(t *testing.T) {
	posts, closing := 0, 0
	for n := range uint64(histories()) {
		seed := testenv.Seed() + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &publisher{t: t}
			defer p.logEdits()
			rng := rand.New(rand.NewPCG(seed, 11))
			p.omit = rng.IntN(2) == 0
			editor := testedit.New(testedit.SmallMap(sp), sp, seed)
			p.publish(editor.Map, 0)
			follower := &subscriber{}
			follower.round(p, len(p.log), false, false)
			for commit := range 2 + rng.IntN(10) {
				next, want := p.next(editor, 1+rng.IntN(3))
				if !p.reachable(want, next) || want.Empty() {
					p.publish(editor.Map, commit)
					follower.round(p, len(p.log), true, false)
					continue
				}
				topics := edited(want)
				form := fragment.Form{Version: xtm.V21, SP: sp, OmitInstances: rng.IntN(2) == 0}
				posted := func() (*fragment.Change, string) {
					tm, text := document(t, elements(t, next, form, topics), form)
					got, err := fragment.Replace(t.Context(), &p.state, tm, sp, topics...)
					require.NoError(t, err, "%s", text)
					return got, text
				}
				got, text := posted()
				require.Equal(t, want.Entries, got.Entries, "%s", text)
				require.Equal(t, [3]int{want.Added, want.Updated, want.Deleted}, [3]int{got.Added, got.Updated, got.Deleted})
				whole := clone(t, &p.state)
				apply(t, whole, want)
				p.commit(got, commit)
				require.Equal(t, dump(t, whole), dump(t, &p.state), "%s", text)
				p.whole()
				again, _ := posted()
				require.Empty(t, again.Entries, "posted twice")
				follower.round(p, len(p.log), rng.IntN(2) == 0, false)
				require.Equal(t, contents(t, &p.state), contents(t, &follower.state), "the subscriber\n%s", text)
				posts++
				for _, e := range got.Entries {
					if e.Deleted || e.Topic != e.TopicSI {
						closing++
					}
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	require.Greater(t, posts, 2*histories(), "too few posts to mean anything")
	require.Greater(t, closing, histories()/4, "too few of them closed a TopicSI")
}

// TestFragmentsAsServedChangeNothingWhenPosted posts every fragment of random maps
// back: of classes with their instances, of topics without names, reified and
// scoped statements.
func TestFragmentsAsServedChangeNothingWhenPosted(t *testing.T) {
	unnamed := 0
	for n := range uint64(histories() / 3) {
		p := &publisher{t: t}
		editor := testedit.New(testedit.SmallMap(sp), sp, testenv.Seed()+n)
		for range 25 {
			p.edits = append(p.edits, editor.Edit())
		}
		p.publish(editor.Map, 0)
		for topic, err := range p.state.Topics() {
			require.NoError(t, err)
			for _, omit := range []bool{false, true} {
				form := fragment.Form{Version: xtm.V21, SP: sp, OmitInstances: omit}
				refs := []fragment.Ref{topic.TopicSI()}
				tm, text := document(t, elements(t, &p.state, form, refs), form)
				c, err := fragment.Replace(t.Context(), &p.state, tm, sp, refs...)
				require.NoError(t, err, "%s", text)
				require.Empty(t, c.Entries, "%s", text)
				if len(topic.Names)+len(topic.Occurrences) == 0 {
					continue
				}
				unnamed++
				tm, _ = document(t, elements(t, &p.state, form, refs), form)
				c, err = fragment.Replace(t.Context(), &p.state, tm, sp)
				require.NoError(t, err, "%s", text)
				require.Empty(t, c.Entries, "%s", text)
			}
		}
	}
	require.Greater(t, unnamed, histories())
}

// TestWhateverIsPostedLeavesAWholeMap posts documents that are about some of the changes of an editor, with some of
// the identifiers: they merge, split and contradict published topics. Each is refused and changes nothing, or leaves
// a map that is whole, and subscribers in step with it.
func TestWhateverIsPostedLeavesAWholeMap(t *testing.T) {
	done, refused := 0, map[string]int{}
	for n := range uint64(histories()) {
		seed := testenv.Seed() + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &publisher{t: t}
			defer p.logEdits()
			rng := rand.New(rand.NewPCG(seed, 13))
			editor := testedit.New(testedit.SmallMap(sp), sp, seed)
			for range 10 {
				editor.Edit()
			}
			p.publish(editor.Map, 0)
			follower := &subscriber{}
			follower.round(p, len(p.log), false, false)
			for commit := range 15 {
				next, want := p.next(editor, 1+rng.IntN(6))
				topics := edited(want)
				rng.Shuffle(len(topics), func(i, j int) { topics[i], topics[j] = topics[j], topics[i] })
				topics = topics[:min(len(topics), 1+rng.IntN(3))]
				form := fragment.Form{Version: xtm.V21, SP: sp}
				all := elements(t, next, form, topics)
				for _, e := range all {
					if topic, ok := e.(*xtm.Topic); ok && len(topic.SubjectIdentifiers) > 1 && rng.IntN(3) == 0 {
						i := rng.IntN(len(topic.SubjectIdentifiers))
						topic.SubjectIdentifiers = slices.Delete(slices.Clone(topic.SubjectIdentifiers), i, i+1)
					}
				}
				tm, text := document(t, all, form)
				described := map[fragment.Ref]bool{}
				for topic := range tm.Topics() {
					if len(topic.Names())+len(topic.Occurrences()) > 0 || len(slices.Collect(topic.Types())) > 0 {
						for _, l := range slices.Concat(topic.SubjectIdentifiers(), topic.SubjectLocators()) {
							described[l] = true
						}
					}
				}
				before := clone(t, &p.state)
				c, err := fragment.Replace(t.Context(), &p.state, tm, sp)
				var document *fragment.DocumentError
				var inUse *fragment.InUseError
				switch {
				case errors.As(err, &document):
					refused[strings.Join(strings.Fields(document.Reason)[:1], " ")]++
				case errors.As(err, &inUse):
					refused["in use"]++
					require.NotEmpty(t, inUse.Users, "%s", text)
				default:
					require.NoError(t, err, "%s", text)
				}
				if err != nil {
					require.Equal(t, dump(t, before), dump(t, &p.state))
					continue
				}
				done++
				p.commit(c, commit)
				p.whole()
				follower.round(p, len(p.log), rng.IntN(2) == 0, false)
				require.Equal(t, contents(t, &p.state), contents(t, &follower.state), "the subscriber\n%s", text)
				for was, err := range before.Topics() {
					require.NoError(t, err)
					if slices.ContainsFunc(slices.Concat(was.SubjectIdentifiers, was.SubjectLocators), func(l tmdm.Locator) bool { return described[l] }) {
						continue
					}
					now, err := p.state.Topic(was.TopicSI())
					require.NoError(t, err)
					require.Equal(t, was, now, "a topic that is no more than a stub in\n%s", text)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d posts, refused %v", done, refused)
	require.Greater(t, done, 5*histories())
	require.Greater(t, refused["in use"], histories()/4)
}
