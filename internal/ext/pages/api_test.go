package pages_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Each example of the page for programs answers as documented: those that read with the type, the others on a server
// that takes such a request.
func TestExamplesForProgramsRun(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	require.Equal(t, http.StatusCreated, n.PutSettings("voc", "{}").StatusCode)
	require.Equal(t, http.StatusOK, n.Put("voc", []byte(thesaurus), "Content-Type", "text/turtle").StatusCode)
	n.Publish("empty", served.TopicMap())
	example := regexp.MustCompile(`<pre><code>(curl [^<]*)</code>`)
	for name, least := range map[string]int{"m": 15, "voc": 18, "empty": 8} {
		all := example.FindAllStringSubmatch(string(n.MustGet("/topicmaps/"+name+"/api.html").Bytes), -1)
		assert.GreaterOrEqual(t, len(all), least, name)
		for _, one := range all {
			command := html.UnescapeString(one[1])
			quoted := regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(command, -1)
			url := quoted[len(quoted)-1][1]
			if !strings.Contains(command, "Bearer") {
				typ := strings.TrimPrefix(quoted[0][1], "Accept: ")
				a := n.Get(url, "Accept", typ)
				if to := a.Header.Get("Location"); to != "" { // as curl -L does
					a = n.Get(to, "Accept", typ)
				}
				assert.Equal(t, http.StatusOK, a.StatusCode, "%s: %s", command, a.Bytes)
				assert.True(t, served.SameType(typ, a.Header.Get("Content-Type")), "%s: %s", command, a.Header.Get("Content-Type"))
				continue
			}
			method := map[bool]string{true: "PUT"}[strings.Contains(command, "-T ")]
			if given := regexp.MustCompile(`-X (\w+)`).FindStringSubmatch(command); given != nil {
				method = given[1]
			}
			path, _, _ := strings.Cut(url, "?")
			allowed := n.Do("PATCH", path, nil).Header.Get("Allow")
			assert.Contains(t, allowed, method, command)
		}
	}
}
