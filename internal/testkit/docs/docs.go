// Package docs makes documents of a few topics for tests, and the documents that servers make of them.
package docs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// Published returns a document with the subject identifiers that a server assigns.
func Published(t *testing.T, doc, sp string) *tmdm.TopicMap {
	tm, err := xtm.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)
	return m.TopicMap()
}

// Canonical returns the canonical form of a map (ISO 13250-4) on a prefix, item identifiers left out.
func Canonical(t *testing.T, tm *tmdm.TopicMap, sp string) string {
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: tmdm.Locator(sp), OmitItemIdentifiers: true}))
	return b.String()
}

// Map returns an XTM 2.1 document of some topics and associations.
func Map(elements ...string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + "\n" + strings.Join(elements, "\n") +
		"\n</topicMap>\n"
}

// SI returns a subject identifier.
func SI(id string) string { return "http://psi.example.org/" + id }

// Topic returns a topic with a name, and the subject identifier SI(id).
func Topic(id, name string) string {
	return fmt.Sprintf(`<topic><subjectIdentifier href=%q/><name><value>%s</value></name></topic>`, SI(id), name)
}

// Link returns an association of two topics.
func Link(typ, a, b string) string {
	role := func(typ, player string) string {
		return fmt.Sprintf(`<role><type><subjectIdentifierRef href=%q/></type><subjectIdentifierRef href=%q/></role>`,
			SI(typ), SI(player))
	}
	return fmt.Sprintf(`<association><type><subjectIdentifierRef href=%q/></type>%s%s</association>`, SI(typ),
		role("from", a), role("to", b))
}

// Topics returns n topics t0, t1, … with names that end in version.
func Topics(n int, version string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = Topic(fmt.Sprintf("t%d", i), fmt.Sprintf("Topic %d %s", i, version))
	}
	return all
}

// Reading returns a function that reads a document on a base.
func Reading(t *testing.T, doc string) func(base tmdm.Locator) (*tmdm.TopicMap, error) {
	return func(base tmdm.Locator) (*tmdm.TopicMap, error) {
		require.NotEmpty(t, base)
		return xtm.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: base})
	}
}
