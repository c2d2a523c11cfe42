package derive_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

func put(t *testing.T, m *merge.Memory, value string, sis ...fragment.Ref) {
	topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: sis}, Names: []fragment.Name{{Value: value, Type: "http://type"}}}
	require.NoError(t, m.PutTopic(topic))
	require.NoError(t, m.PutTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://type"}}, Provisional: true}))
}

// A merged topic keeps its TopicSI when a source adds a lesser one, and gets a closing entry when it is split.
func TestTopicSIsStay(t *testing.T) {
	var one, two, published merge.Memory
	update := func(dirty ...fragment.Ref) *fragment.Change {
		view := merge.NewView(t.Context(), merge.Part{SP: "http://1/", Source: &one}, merge.Part{SP: "http://2/", Source: &two})
		u, err := derive.Between(t.Context(), &published, view, nil, 100, nil, dirty...)
		require.NoError(t, err)
		require.NoError(t, records.ApplyChange(&published, u.Change))
		return u.Change
	}
	put(t, &one, "b", "http://b")
	update("http://b")
	put(t, &two, "a", "http://a", "http://b")
	c := update("http://a")
	require.Len(t, c.Entries, 1)
	require.Equal(t, fragment.Ref("http://b"), c.Entries[0].TopicSI, "the TopicSI stays, though the view's is less")
	require.NoError(t, one.DeleteTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://b"}}}))
	put(t, &two, "a", "http://a")
	c = update("http://b", "http://a")
	require.Len(t, c.Entries, 2)
	require.Equal(t, fragment.Ref("http://a"), c.Entries[0].TopicSI)
	require.True(t, c.Entries[1].Deleted, "nobody has the identifier any more")
	require.Equal(t, []fragment.Ref{"http://b"}, c.Entries[1].Tombstone.SubjectIdentifiers)
}

// A topic without a source is published as long as it is referred to.
func TestUnreferredTopicsGo(t *testing.T) {
	var one, published merge.Memory
	put(t, &one, "a", "http://a")
	view := func() *merge.View { return merge.NewView(t.Context(), merge.Part{SP: "http://1/", Source: &one}) }
	u, err := derive.Between(t.Context(), &published, view(), nil, 100, nil, "http://a", "http://type")
	require.NoError(t, err)
	require.NoError(t, records.ApplyChange(&published, u.Change))
	require.Len(t, u.Change.Entries, 2)
	require.NoError(t, one.DeleteTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://a"}}}))
	require.NoError(t, one.DeleteTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://type"}}}))
	u, err = derive.Between(t.Context(), &published, view(), nil, 100, nil, "http://a")
	require.NoError(t, err)
	require.NoError(t, records.ApplyChange(&published, u.Change))
	for topic := range published.Topics() {
		t.Errorf("%s is still there", topic.TopicSI())
	}
}

// The effect of a filter changes with the topics that it names: then other topics pass, without other changes of them.
func TestWhomAFilterMeans(t *testing.T) {
	var one merge.Memory
	put(t, &one, "a", "http://a")
	put(t, &one, "b", "http://b", "http://also-b")
	instance := fragment.NewAssociation(2)
	instance.Type = tmdm.PSITypeInstance
	instance.Roles = []fragment.Role{{Type: tmdm.PSIInstance, Player: "http://a"}, {Type: tmdm.PSIType, Player: "http://b"}}
	published := func(f store.Filter) (names []string, meant [][]fragment.Ref) {
		view := merge.NewView(t.Context(), merge.Part{SP: "http://1/", Source: &one})
		filter, err := derive.Resolve(view, &f)
		require.NoError(t, err)
		u, err := derive.Between(t.Context(), &merge.Memory{}, view, filter, 100, nil, "http://a", "http://b", "http://type")
		require.NoError(t, err)
		for _, topic := range u.Change.PutTopics {
			for _, n := range topic.Names {
				names = append(names, n.Value)
			}
		}
		return names, filter.Meant()
	}
	types := store.Filter{Types: []fragment.Ref{"http://also-b"}}
	names, before := published(types)
	require.Empty(t, names)
	require.NoError(t, one.PutAssociation(instance))
	names, _ = published(types)
	require.Equal(t, []string{"a"}, names, "names of another type than the default one do not pass with a reference")
	put(t, &one, "names", tmdm.PSIDefaultNameType, "http://type")
	_, meant := published(types)
	require.NotEqual(t, before, meant, "what the default name type is decides what passes")
}

// Concepts are within another by any path of broader and narrower, and within a scheme by any property of SKOS for it.
// Cycles end.
func TestWhatIsWithinAConcept(t *testing.T) {
	const skos = "http://www.w3.org/2004/02/skos/core#"
	var one merge.Memory
	all := []string{"animal", "dog", "terrier", "cat", "plant", "other", "scheme", "top", "in"}
	for _, name := range all {
		put(t, &one, name, fragment.Ref("http://c/"+name))
	}
	says := func(subject, property, object string) {
		a := fragment.NewAssociation(2)
		a.Type = fragment.Ref(skos + property)
		a.Roles = []fragment.Role{{Type: fragment.RDFSubject, Player: fragment.Ref("http://c/" + subject)},
			{Type: fragment.RDFObject, Player: fragment.Ref("http://c/" + object)}}
		require.NoError(t, one.PutAssociation(a))
	}
	passes := func(f store.Filter) (names []string, meant [][]fragment.Ref) {
		view := merge.NewView(t.Context(), merge.Part{SP: "http://1/", Source: &one})
		filter, err := derive.Resolve(view, &f)
		require.NoError(t, err)
		u, err := derive.Between(t.Context(), &merge.Memory{}, view, filter, 100, nil, "http://c/animal", "http://c/dog", "http://c/terrier",
			"http://c/cat", "http://c/plant", "http://c/other", "http://c/scheme", "http://c/top", "http://c/in")
		require.NoError(t, err)
		for _, topic := range u.Change.PutTopics {
			for _, n := range topic.Names {
				names = append(names, n.Value)
			}
		}
		slices.Sort(names)
		return names, filter.Meant()
	}
	says("dog", "broader", "animal")
	says("animal", "narrower", "cat")
	says("animal", "related", "plant")
	says("top", "topConceptOf", "scheme")
	says("scheme", "hasTopConcept", "plant")
	says("in", "inScheme", "scheme")
	animals := store.Filter{Within: []fragment.Ref{"http://c/animal"}}
	names, before := passes(animals)
	require.Equal(t, []string{"animal", "cat", "dog"}, names)
	says("terrier", "broader", "dog")
	says("animal", "broader", "terrier")
	names, after := passes(animals)
	require.Equal(t, []string{"animal", "cat", "dog", "terrier"}, names)
	require.NotEqual(t, before, after, "another topic is within")
	names, _ = passes(store.Filter{Within: []fragment.Ref{"http://c/scheme"}})
	require.Equal(t, []string{"in", "plant", "scheme", "top"}, names)
	names, _ = passes(store.Filter{Within: []fragment.Ref{"http://c/animal", "http://c/scheme"}, ScopedNames: true})
	require.Empty(t, names)
}
