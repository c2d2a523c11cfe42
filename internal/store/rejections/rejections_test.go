package rejections_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
)

// fact is a short form of a statement of a source.
type fact struct {
	kind  rejections.Kind
	topic int    // the topic, or the player of the first role
	text  string // value, identifier or locator
	typ   int
	theme int    // 0: none
	owner string // the value of the name that a variant is of; the other player
}

func si(i int) fragment.Ref { return fragment.Ref(fmt.Sprintf("http://psi.example.org/%02d", i)) }

func themes(themes ...int) (refs []fragment.Ref) {
	for _, theme := range themes {
		if theme > 0 {
			refs = append(refs, si(theme))
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

const topics = 12

// wild returns random facts of a source: each topic has at least a name.
func wild(rng *rand.Rand) map[fact]fragment.Ref {
	facts := map[fact]fragment.Ref{} // with their reifiers
	reifier := func() fragment.Ref {
		if rng.IntN(4) > 0 {
			return ""
		}
		return si(1 + rng.IntN(topics))
	}
	given := map[string]bool{}
	for t := 1; t <= topics; t++ {
		for range rng.IntN(3) {
			text := fmt.Sprintf("http://also.example.org/%d", rng.IntN(3*topics))
			if !given[text] { // a source gives an identifier to one topic
				given[text] = true
				facts[fact{kind: rejections.Identifier, topic: t, text: text}] = ""
			}
			if text = fmt.Sprintf("http://documents.example.org/%d", rng.IntN(2*topics)); !given[text] {
				given[text] = true
				facts[fact{kind: rejections.Locator, topic: t, text: text}] = ""
			}
		}
		for range 1 + rng.IntN(3) {
			name := fact{kind: rejections.Name, topic: t, text: fmt.Sprint("name ", rng.IntN(3)), theme: rng.IntN(3)}
			facts[name] = reifier()
			for range rng.IntN(2) {
				facts[fact{kind: rejections.Variant, topic: t, text: fmt.Sprint("variant ", rng.IntN(2)), theme: name.theme, typ: 10, owner: name.text}] = reifier()
			}
		}
		for range rng.IntN(3) {
			facts[fact{kind: rejections.Occurrence, topic: t, text: fmt.Sprint(rng.IntN(2)), typ: 1 + rng.IntN(2), theme: rng.IntN(2)}] = reifier()
		}
		for range rng.IntN(3) {
			facts[fact{kind: rejections.Association, topic: t, typ: rng.IntN(3), theme: rng.IntN(2), owner: string(si(1 + rng.IntN(topics)))}] = reifier()
		}
	}
	return facts
}

func (f fact) name() *fragment.Name {
	return &fragment.Name{Value: f.text, Type: tmdm.PSIDefaultNameType, Scope: themes(f.theme)}
}

func (f fact) association() *fragment.Association {
	a := &fragment.Association{Type: si(f.typ), Scope: themes(f.theme), Roles: []fragment.Role{{Type: si(1), Player: si(f.topic)}, {Type: si(2), Player: fragment.Ref(f.owner)}}}
	if f.typ == 0 {
		a.Type, a.Roles[0].Type, a.Roles[1].Type = tmdm.PSITypeInstance, tmdm.PSIInstance, tmdm.PSIType
	}
	a.Canonical()
	return a
}

// state makes the records of facts.
func state(t *testing.T, facts map[fact]fragment.Ref) *merge.Memory {
	var m merge.Memory
	for i := 1; i <= topics; i++ {
		topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{si(i)}}}
		for f, reifier := range facts {
			if f.topic != i {
				continue
			}
			switch f.kind {
			case rejections.Identifier:
				topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, tmdm.Locator(f.text))
			case rejections.Locator:
				topic.SubjectLocators = append(topic.SubjectLocators, tmdm.Locator(f.text))
			case rejections.Name:
				n := f.name()
				n.Reifier = reifier
				for v, reifier := range facts {
					if v.kind == rejections.Variant && v.topic == i && v.owner == f.text && v.theme == f.theme {
						n.Variants = append(n.Variants, fragment.Variant{Value: v.text, Datatype: tmdm.XSDString, Scope: themes(v.theme, v.typ), Reifier: reifier})
					}
				}
				topic.Names = append(topic.Names, *n)
			case rejections.Occurrence:
				topic.Occurrences = append(topic.Occurrences, fragment.Occurrence{Value: f.text, Datatype: tmdm.XSDString, Type: si(f.typ), Scope: themes(f.theme), Reifier: reifier})
			case rejections.Association:
				a := f.association()
				a.Reifier = reifier
				require.NoError(t, m.PutAssociation(a))
			}
		}
		topic.Canonical()
		require.NoError(t, m.PutTopic(topic))
	}
	return &m
}

func (f fact) claim() rejections.Claim {
	switch f.kind {
	case rejections.Identifier:
		if f.topic%2 == 0 { // which one is the TopicSI does not matter
			return rejections.OfIdentifier(fragment.Ref(f.text), si(f.topic))
		}
		return rejections.OfIdentifier(si(f.topic), tmdm.Locator(f.text))
	case rejections.Locator:
		return rejections.OfLocator(si(f.topic), tmdm.Locator(f.text))
	case rejections.Name:
		return rejections.OfName(si(f.topic), f.name())
	case rejections.Variant:
		n := &fragment.Name{Value: f.owner, Type: tmdm.PSIDefaultNameType, Scope: themes(f.theme)}
		return rejections.OfVariant(si(f.topic), n, &fragment.Variant{Value: f.text, Datatype: tmdm.XSDString, Scope: themes(f.theme, f.typ)})
	case rejections.Occurrence:
		return rejections.OfOccurrence(si(f.topic), &fragment.Occurrence{Value: f.text, Datatype: tmdm.XSDString, Type: si(f.typ), Scope: themes(f.theme)})
	}
	return rejections.OfAssociation(f.association())
}

// left are the facts that are not rejected.
func left(facts map[fact]fragment.Ref, rejected map[fact]bool) map[fact]fragment.Ref {
	all := map[fact]fragment.Ref{}
	for f, reifier := range facts {
		if !rejected[f] {
			all[f] = reifier
		}
	}
	return all
}

// A node follows several sources, rejects some of their statements, and the sources are replaced by new versions: the
// merged view is that of the sources without the rejected statements.
func TestTheMergedViewIsTheUnionLessWhatIsRejected(t *testing.T) {
	changed := 0
	for n := range uint64(testenv.Rounds(40, 2000)) {
		seed := testenv.Seed() + n
		rng := rand.New(rand.NewPCG(seed, 31))
		at := func(what string) string { return fmt.Sprintf("seed %d: %s", seed, what) }
		db := open(t)
		names := []string{"a", "b", "c"}[:1+rng.IntN(3)]
		stated, rejected := map[string]map[fact]fragment.Ref{}, map[string]map[fact]bool{}
		for _, name := range names {
			require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: name, SP: "http://" + name + ".example.org/"}))
			stated[name], rejected[name] = wild(rng), map[fact]bool{}
			follow(t, db, name, state(t, stated[name]))
		}
		check := func(what string) {
			t.Helper()
			plain, reduced := map[string]*merge.Memory{}, map[string]*merge.Memory{}
			for _, name := range names {
				plain[name], reduced[name] = state(t, stated[name]), state(t, left(stated[name], rejected[name]))
			}
			if requireParts(t, db, reduced, at(what)) != joined(t, plain) {
				changed++
			}
			for _, name := range names {
				requireListed(t, db, name, stated[name], rejected[name], at(what))
			}
		}
		for _, name := range names {
			few := 1 + rng.IntN(60) // of the facts, one in so many
			for f := range stated[name] {
				if rng.IntN(few) == 0 {
					rejected[name][f] = true
					require.NoError(t, db.Reject(t.Context(), name, "because", f.claim()))
				}
			}
		}
		check("rejected")
		for _, name := range names { // the next version has some of the old facts, and new ones
			next := wild(rng)
			for f, reifier := range stated[name] {
				if f.kind != rejections.Identifier && f.kind != rejections.Locator && rng.IntN(2) == 0 {
					next[f] = reifier
				}
			}
			stated[name] = next
			follow(t, db, name, state(t, next))
		}
		check("replaced")
		for _, name := range names {
			for f := range rejected[name] {
				require.NoError(t, db.Unreject(t.Context(), name, f.claim()))
				require.ErrorIs(t, db.Unreject(t.Context(), name, f.claim()), store.ErrNotFound)
			}
			rejected[name] = nil
		}
		check("taken back")
	}
	require.Greater(t, changed, 0, "rejections had an effect")
}

func open(t *testing.T) *store.DB {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Engine: memory.New(), Access: store.Create})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// follow makes records the state of a subscription, in the place of the one that it has.
func follow(t *testing.T, db *store.DB, name string, src fragment.Source) {
	require.NoError(t, db.StageSource(t.Context(), name, fragment.Records(src), store.Mark{}, nil))
	require.NoError(t, db.UpdateSubscription(t.Context(), name, func(s *store.Subscription) { s.State, s.Staging = s.Staging, nil }))
}

// joined is the canonical form of the merged view of several sources.
func joined(t *testing.T, all map[string]*merge.Memory) string {
	var parts []merge.Part
	for name, m := range all {
		parts = append(parts, merge.Part{SP: "http://" + name + ".example.org/", Source: m})
	}
	return canonical(t, parts)
}

func canonical(t *testing.T, parts []merge.Part) string {
	tm, _, err := merge.Join(t.Context(), parts...)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{}))
	return b.String()
}

// requireParts checks that the merged view, and each part of it, is as expected. It returns the canonical form of the
// view.
func requireParts(t *testing.T, db *store.DB, want map[string]*merge.Memory, at string) (got string) {
	t.Helper()
	require.NoError(t, db.ReadParts(t.Context(), func(all []store.Part) error {
		var parts []merge.Part
		for _, p := range all {
			parts = append(parts, merge.Part{SP: p.SP, Source: p.Source})
			requireSame(t, want[p.Name], p.Source, at)
			if r, ok := p.Source.(*rejections.Source); ok { // over a source that gives records alone
				bare := struct{ fragment.Source }{r.All()}
				requireSame(t, want[p.Name], rejections.Without(bare, r.Rejections()), at)
				for _, one := range r.Rejections() {
					found, err := one.StatedBy(r.All())
					require.NoError(t, err)
					again, err := one.StatedBy(bare)
					require.NoError(t, err)
					require.Equal(t, found, again, "%s: %s", at, &one.Claim)
				}
			}
		}
		got = canonical(t, parts)
		return nil
	}))
	require.Equal(t, joined(t, want), got, at)
	return got
}

// requireSame checks that a source returns the same as another, for all reads.
func requireSame(t *testing.T, want *merge.Memory, got fragment.Source, at string) {
	t.Helper()
	require.Equal(t, listed(t, want.Topics()), listed(t, got.Topics()), at)
	require.ElementsMatch(t, listed(t, want.Associations()), listed(t, got.Associations()), at)
	reified := got.(merge.Reified)
	require.Equal(t, listed(t, want.ReifiedTopics()), listed(t, reified.ReifiedTopics()), at)
	require.ElementsMatch(t, listed(t, want.ReifiedAssociations()), listed(t, reified.ReifiedAssociations()), at)
	ask := []tmdm.Locator{}
	for i := range 3 * topics {
		ask = append(ask, si(i), tmdm.Locator(fmt.Sprintf("http://also.example.org/%d", i)), tmdm.Locator(fmt.Sprintf("http://documents.example.org/%d", i)))
	}
	for _, l := range ask {
		wanted, _ := want.Topic(l)
		topic, err := got.Topic(l)
		require.NoError(t, err)
		require.Equal(t, wanted, topic, "%s: %s", at, l)
		if identifier, ok := got.(fragment.Identifier); ok {
			id, err := identifier.Identity(l)
			require.NoError(t, err)
			require.Equal(t, wanted == nil, id == nil, "%s: %s", at, l)
			if id != nil {
				require.Equal(t, wanted.Identity, *id, "%s: %s", at, l)
			}
		}
		wanted, _ = want.TopicBySubjectLocator(l)
		topic, err = got.TopicBySubjectLocator(l)
		require.NoError(t, err)
		require.Equal(t, wanted, topic, "%s: %s", at, l)
		for _, part := range fragment.Parts {
			require.Equal(t, listed(t, want.AssociationsOf(l, part)), listed(t, got.AssociationsOf(l, part)), "%s: %s", at, l)
		}
	}
}

func listed[T any](t *testing.T, all iter.Seq2[*T, error]) (list []*T) {
	for x, err := range all {
		require.NoError(t, err)
		list = append(list, x)
	}
	return list
}

// requireListed checks that each rejection reports whether its claim is stated.
func requireListed(t *testing.T, db *store.DB, name string, stated map[fact]fragment.Ref, rejected map[fact]bool, at string) {
	t.Helper()
	want := map[string]bool{}
	for f := range rejected {
		c := f.claim()
		_, want[c.Key()] = stated[f]
		if f.kind == rejections.Variant { // a variant is removed with its name
			_, has := stated[fact{kind: rejections.Name, topic: f.topic, text: f.owner, theme: f.theme}]
			want[c.Key()] = want[c.Key()] && has
		}
	}
	all, err := db.Rejections(t.Context(), name)
	require.NoError(t, err)
	got := map[string]bool{}
	for _, r := range all {
		got[r.Key()] = r.Stated
		require.Equal(t, "because", r.Reason)
		require.NotEmpty(t, r.String())
	}
	require.Equal(t, want, got, at)
}

// The statements of a source are kept, and proven, unchanged; the end of a subscription ends its rejections.
func TestARejectionIsOfTheViewAndOfTheSubscription(t *testing.T) {
	db := open(t)
	facts := map[fact]fragment.Ref{{kind: rejections.Name, topic: 1, text: "one"}: ""}
	m := state(t, facts)
	name := fact{kind: rejections.Name, topic: 1, text: "one"}.claim()
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "a", SP: "http://a.example.org/"}))
	follow(t, db, "a", m)
	before, err := db.DigestNode(t.Context(), "a", nil)
	require.NoError(t, err)
	require.NoError(t, db.Reject(t.Context(), "a", "not one", name))
	require.NoError(t, db.Reject(t.Context(), "a", "because", name), "again, for another reason")
	requireListed(t, db, "a", facts, map[fact]bool{{kind: rejections.Name, topic: 1, text: "one"}: true}, "")
	after, err := db.DigestNode(t.Context(), "a", nil)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, db.ReadSources(t.Context(), func(_ []store.Subscription, all []fragment.Source) error {
		requireSame(t, m, all[0].(interface {
			fragment.Source
			merge.Reified
		}), "")
		return nil
	}))
	var noted []store.Activity
	require.NoError(t, db.Activity(t.Context(), func(a store.Activity) bool {
		noted = append(noted, a)
		return len(noted) < 2
	}))
	require.Equal(t, sources.ActivityKind("rejected"), noted[0].Kind)
	require.Equal(t, "because", noted[0].Note)
	require.Equal(t, `name "one"`, noted[0].Entries[0].Title)

	number := func() uint32 {
		all, err := db.Subscriptions(t.Context())
		require.NoError(t, err)
		return all[0].Number
	}
	was := number()
	require.NoError(t, db.RemoveSubscription(t.Context(), "a"))
	require.ErrorIs(t, db.Reject(t.Context(), "a", "", name), store.ErrNotFound)
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "a", SP: "http://a.example.org/"}))
	follow(t, db, "a", m)
	requireListed(t, db, "a", facts, nil, "subscribed again")
	require.NotEqual(t, was, number())
	require.NoError(t, db.Dump(t.Context(), func(d *store.Dump) error {
		for row, err := range d.Rows() {
			require.NoError(t, err)
			require.NotEqual(t, byte(keys.TableRejection), keys.Table(row.Key))
		}
		return nil
	}))
}
