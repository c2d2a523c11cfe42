package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
)

// classified is a map of a class and of so many instances of it with long subject identifiers. The
// class itself is an instance of another.
func classified(instances int, name string) []byte {
	kind := `<instanceOf><topicRef xlink:href="#%s"/></instanceOf>`
	parts := []string{topic("kind", "Kind"), strings.Replace(topic("town", name), "<subjectIdentity>", fmt.Sprintf(kind, "kind")+"<subjectIdentity>", 1)}
	for i := range instances {
		id := fmt.Sprint("t", i)
		t := identified(id, []string{fmt.Sprint(psi, "town-", strings.Repeat("long-", 200), i)}, "A town")
		parts = append(parts, strings.Replace(t, "<subjectIdentity>", fmt.Sprintf(kind, "town")+"<subjectIdentity>", 1))
	}
	return topicMap(parts...)
}

// The record of a class says of what it is an instance, and nothing of its instances, which come
// and go without a change of it. The fragment of its entry has them.
func TestRecordsOfClassesAreWithoutTheirInstances(t *testing.T) {
	t.Parallel()
	for name, instances := range map[string]int{"small": 3, "too large to be kept": 150} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, changesPerList(4))
			n.publish("m", classified(instances, "Town"))
			url := n.url("/topicmaps/m/topics/" + fragment.Key(psi+"town"))
			n.visited("m").check()
			same := func(was, is answer) {
				t.Helper()
				assert.Equal(t, string(was.body), string(is.body))
				assert.Equal(t, was.Header.Get("ETag"), is.Header.Get("ETag"))
				assert.Equal(t, was.Header.Get("TMShare-Record-Updated"), is.Header.Get("TMShare-Record-Updated"))
			}
			first := n.mustGet(url)
			assert.Contains(t, string(first.body), psi+"kind")
			assert.NotContains(t, string(first.body), psi+"town-")
			n.mustPut("m", classified(instances-1, "Town"))
			n.visited("m").check()
			same(first, n.mustGet(url))

			n.mustPut("m", classified(instances-1, "Village"))
			n.visited("m").check()
			second := n.mustGet(url)
			assert.NotEqual(t, first.Header.Get("ETag"), second.Header.Get("ETag"))
			n.mustPut("m", classified(instances+1, "Village"))
			n.visited("m").check()
			same(second, n.mustGet(url))

			// The fragment has them; the version of the topic is the record.
			entry := ""
			require.NoError(t, n.Store.View(n.t.Context(), "m", func(v *store.View) error {
				e, err := v.Last(fragment.Key(psi + "town"))
				entry = v.ID(e).String()
				return err
			}))
			a := n.mustGet("/topicmaps/m/fragments/" + entry)
			assert.Contains(t, string(a.body), psi+"town-")
			assert.Empty(t, a.Header.Get("Memento-Datetime"))
			link := regexp.MustCompile(`<([^>]*)>; rel="memento"`).FindStringSubmatch(strings.Join(second.Header.Values("Link"), ","))
			require.NotNil(t, link)
			a = n.mustGet(link[1])
			assert.Equal(t, string(second.body), string(a.body))
			assert.NotEmpty(t, a.Header.Get("Memento-Datetime"))
			assert.Contains(t, a.Header.Get("Cache-Control"), "immutable")
		})
	}
}
