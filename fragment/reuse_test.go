package fragment_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Documents are written with the memory of those before them. Nothing of these,
// and no error that they ended with, may show.
func TestADocumentIsTheSameWhateverWasWrittenBefore(t *testing.T) {
	tm := tmdm.New()
	plain := tm.CreateTopicBySubjectIdentifier("urn:plain")
	plain.AddName("plain", nil)
	broken := tm.CreateTopicBySubjectIdentifier("urn:broken")
	broken.AddName("\x00", nil)
	rich := tm.CreateTopicBySubjectIdentifier("urn:rich")
	rich.AddType(tm.CreateTopicBySubjectIdentifier("urn:class"))
	named := rich.AddType(tm.CreateTopicBySubjectIdentifier("urn:other-class")) // written as an association
	require.NoError(t, tmdm.AddItemIdentifier(named, sp+"typing"))
	rich.AddName("rich", nil, plain).AddVariant("v", tmdm.XSDString, broken)
	for i := range 200 { // more mentions than are kept
		rich.AddOccurrence("o", tmdm.XSDString, tm.CreateTopicBySubjectIdentifier(tmdm.Locator(fmt.Sprintf("urn:type-%d", i))))
	}
	require.NoError(t, tm.Normalize(t.Context()))
	m, err := fragment.NewMap(tm, sp)
	require.NoError(t, err)

	for _, v := range []xtm.Version{xtm.V10, xtm.V21} {
		form := fragment.Form{Version: v, SP: sp}
		document := func(ref fragment.Ref) string {
			var out bytes.Buffer
			require.NoError(t, fragment.Write(&out, m, ref, form))
			return out.String()
		}
		want := map[fragment.Ref]string{}
		for _, ref := range []fragment.Ref{"urn:plain", "urn:rich", "urn:class"} {
			want[ref] = document(ref)
		}
		require.Equal(t, 1, strings.Count(want["urn:rich"], "<association"), "the one that is more than a type")
		before := map[string]func(){
			"a rich topic": func() { document("urn:rich") },
			"an error":     func() { require.Error(t, fragment.Write(io.Discard, m, "urn:broken", form)) },
			"a tombstone": func() {
				require.NoError(t, fragment.WriteTombstone(io.Discard, fragment.Identity{SubjectIdentifiers: []tmdm.Locator{"urn:plain"}}, form))
			},
			"half of a snapshot": func() { require.Error(t, fragment.WriteSnapshot(io.Discard, m, form)) },
		}
		for what, write := range before {
			for ref, same := range want {
				write()
				assert.Equal(t, same, document(ref), "%s in XTM %s after %s", ref, v, what)
			}
		}
	}
}

// The identifiers of a record are in order, also where the map has them in
// another, which stays as it is.
func TestIdentifiersAreInOrder(t *testing.T) {
	sis := []tmdm.Locator{"urn:m", "urn:z", "urn:a"}
	sls := []tmdm.Locator{"urn:z", "urn:a"}
	for name, c := range map[string]struct{ sis, sls []tmdm.Locator }{
		"subject identifiers": {sis, sls[:1]}, "subject locators": {sis[:1], sls}, "both": {sis, sls},
	} {
		tm := tmdm.New()
		topic := tm.CreateTopic()
		for _, l := range c.sis {
			require.NoError(t, topic.AddSubjectIdentifier(l))
		}
		for _, l := range c.sls {
			require.NoError(t, topic.AddSubjectLocator(l))
		}
		m, err := fragment.NewMap(tm, sp)
		require.NoError(t, err)
		id, err := m.Identity("urn:z")
		if len(c.sis) == 1 {
			id, err = m.Identity("urn:m")
		}
		require.NoError(t, err, name)
		record, err := m.Topic("urn:m")
		require.NoError(t, err)
		for _, id := range []fragment.Identity{*id, record.Identity} {
			assert.Equal(t, fragment.Ref("urn:m"), id.TopicSI(), name)
			assert.Equal(t, sorted(append([]tmdm.Locator{}, c.sis[1:]...)), append([]tmdm.Locator{}, id.SubjectIdentifiers[1:]...), name)
			assert.Equal(t, sorted(append([]tmdm.Locator{}, c.sls...)), id.SubjectLocators, name)
		}
		assert.Equal(t, c.sis, topic.SubjectIdentifiers(), name)
		assert.Equal(t, c.sls, topic.SubjectLocators(), name)
	}
}

// The content that Form.ContentOnly leaves in changes exactly when an entry is published for the topic.
func TestContentOnlyChangesWithEntriesOnly(t *testing.T) {
	written := func(m *fragment.Map, version xtm.Version, contentOnly bool) string {
		var doc bytes.Buffer
		require.NoError(t, fragment.Write(&doc, m, a, fragment.Form{Version: version, SP: sp, OmitInstances: true, ContentOnly: contentOnly}))
		return doc.String()
	}
	called := func(c tmdm.Construct, id tmdm.Locator) { require.NoError(t, tmdm.AddItemIdentifier(c, sp+"#"+id)) }
	const ids, identifiers, content = "item identifiers", "identifiers of another topic", "content"
	for name, o := range map[string]struct {
		kind string
		edit func(draft)
	}{
		"item identifier of a name":         {ids, func(m draft) { called(m.Topic(a).Names()[0], "n") }},
		"item identifier of an occurrence":  {ids, func(m draft) { called(m.Topic(a).Occurrences()[0], "o") }},
		"item identifier of an association": {ids, func(m draft) { called(associationOf(m), "a") }},
		"item identifier of a role":         {ids, func(m draft) { called(associationOf(m).Roles()[0], "r") }},
		"item identifier of a typing": {ids, func(m draft) {
			for assoc := range m.Associations() {
				if _, _, typing := assoc.TypeInstance(); typing {
					called(assoc, "t")
				}
			}
		}},
		"subject identifier of a stub": {identifiers, func(m draft) { m.Topic(c, "http://new") }},
		"subject locator of a stub":    {identifiers, func(m draft) { require.NoError(t, m.Topic(c).AddSubjectLocator("http://new")) }},
		"item identifier of a stub":    {"", func(m draft) { called(m.Topic(c), "c") }},
		"name of another topic":        {"", func(m draft) { m.Named("C", c) }},
		"instance":                     {"", func(m draft) { m.Topic(e).AddType(m.Topic(a)) }},
		"name":                         {content, func(m draft) { m.Named("another", a) }},
		"own subject identifier":       {content, func(m draft) { m.Topic(a, "http://new") }},
		"association":                  {content, func(m draft) { m.Associate(x, m.Topic(a), m.Topic(e)) }},
		"type":                         {content, func(m draft) { m.Topic(a).AddType(m.Topic(e)) }},
	} {
		t.Run(name, func(t *testing.T) {
			before := func(m draft) {
				base(m)
				m.Topic(a).AddOccurrence("o", tmdm.XSDString, m.Topic(d))
			}
			prior := published(t, nil, before)
			next := published(t, prior, func(m draft) { before(m); o.edit(m) })
			assert.Equal(t, o.kind == content, slices.Contains(entries(diff(t, prior, next)), string(a)), "an entry for the topic")
			for _, version := range []xtm.Version{xtm.V10, xtm.V21} {
				same := written(prior, version, true) == written(next, version, true)
				assert.Equal(t, o.kind != content, same, version)
			}
			changes := written(prior, xtm.V21, false) != written(next, xtm.V21, false)
			assert.Equal(t, o.kind != "", changes, "without ContentOnly")
		})
	}
}

// associationOf returns the only association of base that is no typing.
func associationOf(m draft) *tmdm.Association {
	for assoc := range m.Associations() {
		if _, _, typing := assoc.TypeInstance(); !typing {
			return assoc
		}
	}
	panic("no association")
}
