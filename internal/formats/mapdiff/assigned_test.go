package mapdiff

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// copyOf returns a map as a server with a prefix has it, and as its copies are: without item identifiers.
func copyOf(t *testing.T, sp, content string) *tmdm.TopicMap {
	t.Helper()
	tm, err := xtm.Read(t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`+content+`</topicMap>`), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	_, err = fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)
	for topic := range tm.Topics() {
		tmdm.RemoveItemIdentifier(topic, slices.Clone(topic.ItemIdentifiers())...)
	}
	return tm
}

func forgetting(t *testing.T, a, b *tmdm.TopicMap) []Difference {
	t.Helper()
	ForgetAssigned(a, b, base)
	list, err := Compare(a, b, base)
	require.NoError(t, err)
	return list
}

const unidentified3 = `<topic id="oslo"><name><value>Oslo</value></name><instanceOf><topicRef href="#city"/></instanceOf></topic><topic id="city"/><topic id="bare"/>
	<topic id="located"><subjectLocator href="http://example.org/x"/></topic><topic><subjectLocator href="http://example.org/y"/><name reifier="#r"><value>Y</value></name></topic>
	<topic id="r"/><topic id="known"><subjectIdentifier href="http://psi.example.org/topic/known"/></topic>`

var prefixes = []string{"http://127.0.0.1:8080/topicmaps/m/27b0f8396d2b/", "https://maps.example.org/topicmaps/m/", "http://psi.example.org/maps/", "http://psi.example.org/map#"}

// A copy from a server is equal to its original, and to that from another server: what servers call topics that have no
// subject identifiers is made of their ids.
func TestCopiesFromServersAreEqual(t *testing.T) {
	for _, sp := range prefixes {
		assert.Empty(t, lines(forgetting(t, read(t, unidentified3), copyOf(t, sp, unidentified3))), sp)
		assert.Empty(t, lines(forgetting(t, copyOf(t, sp, unidentified3), read(t, unidentified3))), sp)
		assert.NotEmpty(t, lines(forgetting(t, read(t, strings.Replace(unidentified3, "Oslo", "Bergen", 1)), copyOf(t, sp, unidentified3))), sp)
	}
	assert.Empty(t, lines(forgetting(t, copyOf(t, prefixes[0], unidentified3), copyOf(t, prefixes[1], unidentified3))))
	assert.NotEmpty(t, lines(forgetting(t, copyOf(t, prefixes[2], unidentified3), copyOf(t, prefixes[3], unidentified3))), "nothing shows that servers have made these")
}

// Identifiers that people have given count, whatever they look like, and those of one server tell its topics apart.
func TestOtherIdentifiersAreNotForgotten(t *testing.T) {
	given := func(si string) string {
		return `<topic id="oslo"><subjectIdentifier href="` + si + `"/><name><value>Oslo</value></name></topic>`
	}
	plain := `<topic id="oslo"><name><value>Oslo</value></name></topic>`
	for a, b := range map[string]string{
		plain:                                  given("http://example.org/topic/oslo"),
		given("http://example.org/topic/oslo"): given("http://example.com/topic/oslo"),
		given("https://maps.example.org/topicmaps/m/topic/oslo"):            given("https://maps.example.org/topicmaps/m/topic/christiania"),
		given("http://psi.example.org/oslo"):                                given("https://maps.example.org/topicmaps/m/topic/oslo"),
		given("http://psi.example.org/maps/topic/oslo") + `<topic id="x"/>`: given("http://psi.example.org/maps/topic/bergen") + `<topic id="x"/>`,
	} {
		assert.NotEmpty(t, forgetting(t, read(t, a), read(t, b)), "%s\n%s", a, b)
	}
}
