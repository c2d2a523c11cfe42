package followtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
)

// Contents returns the marshalled records of a source, by a name for each, without the item identifiers of statements:
// they depend on the document that was read, and change without an entry. A topic that is only referred to has its
// identifiers.
func Contents(t testing.TB, src fragment.Source) map[string]string {
	t.Helper()
	all := map[string]string{}
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		if topic.Provisional {
			identifiers(topic, all)
			continue
		}
		all["topic "+string(topic.TopicSI())] = string(fragment.TopicContent(fragment.MarshalTopic(topic)))
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		key := a.Key()
		all["association "+string(key[:])] = string(fragment.AssociationContent(fragment.MarshalAssociation(a)))
	}
	return all
}

// identifiers notes those of a topic, as of one that is only referred to.
func identifiers(topic *fragment.Topic, all map[string]string) {
	for _, l := range slices.Concat(topic.SubjectIdentifiers, topic.SubjectLocators) {
		all[fmt.Sprintf("stub %s: %s", topic.TopicSI(), l)] = ""
	}
}

// SameRecords requires that two sources have the same records, and names the different ones.
func SameRecords(t testing.TB, expected, actual map[string]string, msg string, args ...any) {
	t.Helper()
	var differ []string
	for name, record := range expected {
		if has, ok := actual[name]; !ok || has != record {
			differ = append(differ, fmt.Sprintf("expected %q\n%q\nnot %q", name, record, has))
		}
	}
	for name, record := range actual {
		if _, ok := expected[name]; !ok {
			differ = append(differ, fmt.Sprintf("not expected %q\n%q", name, record))
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		require.Failf(t, "records differ", "%s\n%s", fmt.Sprintf(msg, args...),
			strings.Join(differ[:min(len(differ), 10)], "\n"))
	}
}
