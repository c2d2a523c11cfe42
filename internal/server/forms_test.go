package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
