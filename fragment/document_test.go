package fragment_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const sp = "http://maps.example.org/topicmaps/test/"

// Subject identifiers of the topics that tests are about. a{a,b} is the topic
// with TopicSI a and the identifiers a and b.
const (
	a tmdm.Locator = "http://a"
	b tmdm.Locator = "http://b"
	c tmdm.Locator = "http://c"
	d tmdm.Locator = "http://d"
	e tmdm.Locator = "http://e"
	x tmdm.Locator = "http://x"
)

// read reads what is between the tags of an XTM 2.1 document.
func read(t testing.TB, base, body string) *tmdm.TopicMap {
	t.Helper()
	tm, err := xtm.Read(t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`+body+`</topicMap>`), xtm.Options{Base: tmdm.Locator(base), Limits: xtm.Limits{Locator: 1 << 20}})
	require.NoError(t, err)
	return tm
}

// draft is a map under construction.
type draft struct{ *tmdm.TopicMap }

func (d draft) topic(sis ...tmdm.Locator) *tmdm.Topic {
	t := d.CreateTopicBySubjectIdentifier(sis[0])
	for _, si := range sis[1:] {
		if err := t.AddSubjectIdentifier(si); err != nil {
			panic(err)
		}
	}
	return t
}

func (d draft) named(value string, sis ...tmdm.Locator) *tmdm.Topic {
	t := d.topic(sis...)
	t.AddName(value, nil)
	return t
}

// associate relates topics by an association whose type stands for all roles.
func (d draft) associate(typ tmdm.Locator, players ...*tmdm.Topic) *tmdm.Association {
	a := d.CreateAssociation(d.topic(typ))
	for _, p := range players {
		a.AddRole(d.topic(typ), p)
	}
	return a
}

// reify makes the topic with the identifier the reifier of c.
func (d draft) reify(c tmdm.Reifiable, si tmdm.Locator) {
	if err := tmdm.SetReifier(c, d.topic(si)); err != nil {
		panic(err)
	}
}

// published builds a map and prepares it for publication after prior.
func published(t testing.TB, prior fragment.Source, build func(draft)) *fragment.Map {
	t.Helper()
	tm := tmdm.New()
	build(draft{tm})
	require.NoError(t, tm.Normalize(t.Context()))
	m, err := fragment.NameTopics(t.Context(), tm, sp, prior)
	require.NoError(t, err)
	return m
}

// written returns the fragment of a topic as XTM 2.1.
func written(t testing.TB, src fragment.Source, ref fragment.Ref, omitInstances bool) []byte {
	t.Helper()
	var doc bytes.Buffer
	require.NoError(t, fragment.Write(&doc, src, ref, fragment.Form{Version: xtm.V21, SP: sp, OmitInstances: omitInstances}))
	return doc.Bytes()
}

// topicOf returns the record of a topic, which must be there.
func topicOf(t testing.TB, src fragment.Source, si fragment.Ref) *fragment.Topic {
	t.Helper()
	topic, err := src.Topic(si)
	require.NoError(t, err)
	require.NotNil(t, topic, "topic %s", si)
	return topic
}

// associationsOf returns the associations of a topic in which it takes part in
// one of the given ways.
func associationsOf(t testing.TB, src fragment.Source, si fragment.Ref, parts ...fragment.Part) (found []*fragment.Association) {
	t.Helper()
	for _, part := range parts {
		for a, err := range src.AssociationsOf(si, part) {
			require.NoError(t, err)
			found = append(found, a)
		}
	}
	return found
}

// refs returns the TopicSIs of all topics but those of the model.
func refs(t testing.TB, src fragment.Source) (list []fragment.Ref) {
	t.Helper()
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		if !strings.HasPrefix(string(topic.TopicSI()), "http://psi.topicmaps.org/iso13250/") {
			list = append(list, topic.TopicSI())
		}
	}
	return list
}
