package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
)

// A topic leads to its forms, and each of these back (Z39.99 §14.3, Alternate Representations).
func TestTopicsAndTheirFormsLeadToEachOther(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("m", cities(1, "a"))
	links := func(url, rel string) (found []string) {
		for _, link := range n.mustGet(url).Header.Values("Link") {
			if href, rest, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">"); strings.Contains(rest, `rel="`+rel+`"`) {
				found = append(found, href)
			}
		}
		return found
	}
	topics := n.visit("m").list
	require.NotEmpty(t, topics)
	for topic := range topics {
		assert.Equal(t, []string{topic + ".xtm1", topic + ".xtm21"}, links(topic, "alternate"))
		assert.Empty(t, links(topic, "canonical"))
		for _, form := range links(topic, "alternate") {
			assert.Equal(t, []string{topic}, links(form, "canonical"))
			assert.Empty(t, links(form, "alternate"))
		}
	}
}

// From what belongs to a topic map its Capability List is found, where there is one.
func TestFeedsLeadToTheCapabilityList(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("m", cities(1, "a"))
	for _, path := range []string{"", "/fragments", "/snapshots", "/records", "/records/complete"} {
		at := n.url("/topicmaps/m" + path)
		for range 2 { // the second time it is known
			found := resourcesync.DiscoverInHeader(n.mustGet(at).Header.Values("Link"), at)
			assert.Equal(t, []string{n.url("/topicmaps/m/resourcesync/capabilitylist.xml")}, found, path)
		}
	}
	a := n.do(http.MethodPut, "/topicmaps/m", strings.NewReader(`{"resourceSync":false}`), "Content-Type", "application/json")
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
	for _, path := range []string{"", "/fragments", "/snapshots", "/records", "/records/complete"} {
		assert.Empty(t, n.mustGet("/topicmaps/m"+path).Header.Values("Link"), path)
	}
}
