package pages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Associations say the role of the others once, where all have the same, and with each of them elsewhere.
func TestRolesOfAssociations(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	role := func(typ, player string) string {
		return `<role><type><topicRef href="#` + typ + `"/></type><topicRef href="#` + player + `"/></role>`
	}
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`
	for _, name := range []string{"Oslo", "Norway", "Europe", "Bergen", "Contains", "Place", "Part", "Meeting", "Host", "Guest", "Seat"} {
		doc += `<topic id="` + name + `"><subjectIdentifier href="http://x/` + name + `"/><name><value>` + name + `</value></name></topic>`
	}
	doc += `<association><type><topicRef href="#Contains"/></type>` + role("Place", "Norway") + role("Part", "Oslo") + `</association>
		<association><type><topicRef href="#Contains"/></type>` + role("Place", "Norway") + role("Part", "Bergen") + `</association>
		<association><type><topicRef href="#Meeting"/></type>` + role("Host", "Norway") + role("Guest", "Europe") + role("Seat", "Oslo") + `</association></topicMap>`
	n.Publish("m", []byte(doc))
	text := strings.Join(strings.Fields(n.Page(served.TopicPath("m", "http://x/Norway")+pages.Ending).Text), " ")
	assert.Contains(t, text, "Contains as Place, with Part BergenOslo")
	assert.Contains(t, text, "Meeting as Host Guest: Europe; Seat: Oslo")
}

// What has no name is called by the readable part of its identifier. The whole one is there for who points at it.
func TestWhatHasNoNameIsCalledByItsIdentifier(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	si := "http://example.org/" + strings.Repeat("long/", 30) + "end"
	n.Publish("m", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t"><subjectIdentifier href="http://x/t"/>
		<instanceOf><topicRef href="#class"/></instanceOf></topic><topic id="class"><subjectIdentifier href="`+si+`"/></topic></topicMap>`))
	for _, path := range []string{served.TopicPath("m", "http://x/t"), "/topicmaps/m", "/topicmaps/m/fragments", "/topicmaps/m/types"} {
		body := string(n.MustGet(path + pages.Ending).Bytes)
		assert.Contains(t, body, `title="`+si+`"><bdi>end (example.org)</bdi>`, path)
	}
	assert.Contains(t, n.Page(served.TopicPath("m", si)+pages.Ending).Text, si)
}

// A field for a time has one that shows what the page shows.
func TestFieldForATime(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("m", served.Small())
	topic := served.TopicPath("m", string(n.TopicSIs("m")[0])) + pages.Ending
	path := topic
	for range 2 { // now, and as of then
		a := n.MustGet(path)
		at := regexp.MustCompile(`<input id="at" name="at" type="datetime-local" step="1" value="([^"]+)"`).FindSubmatch(a.Bytes)
		require.NotNil(t, at)
		path = topic + "?at=" + string(at[1])
		assert.Equal(t, http.StatusOK, n.Get(path).StatusCode)
	}
}
