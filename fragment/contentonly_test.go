package fragment_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// What Form.ContentOnly leaves in changes exactly when an entry is published for the topic.
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
		"item identifier of a name":         {ids, func(m draft) { called(m.topic(a).Names()[0], "n") }},
		"item identifier of an occurrence":  {ids, func(m draft) { called(m.topic(a).Occurrences()[0], "o") }},
		"item identifier of an association": {ids, func(m draft) { called(associationOf(m), "a") }},
		"item identifier of a role":         {ids, func(m draft) { called(associationOf(m).Roles()[0], "r") }},
		"item identifier of a typing": {ids, func(m draft) {
			for assoc := range m.Associations() {
				if _, _, typing := assoc.TypeInstance(); typing {
					called(assoc, "t")
				}
			}
		}},
		"subject identifier of a stub": {identifiers, func(m draft) { m.topic(c, "http://new") }},
		"subject locator of a stub":    {identifiers, func(m draft) { require.NoError(t, m.topic(c).AddSubjectLocator("http://new")) }},
		"item identifier of a stub":    {"", func(m draft) { called(m.topic(c), "c") }},
		"name of another topic":        {"", func(m draft) { m.named("C", c) }},
		"instance":                     {"", func(m draft) { m.topic(e).AddType(m.topic(a)) }},
		"name":                         {content, func(m draft) { m.named("another", a) }},
		"own subject identifier":       {content, func(m draft) { m.topic(a, "http://new") }},
		"association":                  {content, func(m draft) { m.associate(x, m.topic(a), m.topic(e)) }},
		"type":                         {content, func(m draft) { m.topic(a).AddType(m.topic(e)) }},
	} {
		t.Run(name, func(t *testing.T) {
			before := func(m draft) {
				base(m)
				m.topic(a).AddOccurrence("o", tmdm.XSDString, m.topic(d))
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
