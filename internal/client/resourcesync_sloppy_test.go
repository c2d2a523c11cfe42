package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sources that are not exact.

// source publishes a Capability List with a Resource List of a second, and a Change List.
func (p *producer) source(at int, resources, changes []string) {
	p.list(at, resources...)
	p.sitemap("changes.xml", `capability="changelist" from="`+second(at)+`"`, changes...)
	p.sitemap("capabilities.xml", `capability="capabilitylist"`, p.item("list.xml", 0, `capability="resourcelist"`), p.item("changes.xml", 0, `capability="changelist"`))
}

func (p *producer) change(path string, at int, metadata string) string {
	return p.item(path, at, `change="updated" datetime="`+second(at)+`" `+metadata)
}

// A temporarily wrong clock dates one change after later ones.
func TestChangeThatIsDatedInTheFuture(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("a", doc(topic("a", "A")))
	p.put("b", doc(topic("b", "B")))
	all := []string{p.item("a", 1, ""), p.item("b", 1, "")}
	p.source(5, all, nil)
	s := p.following(t, "capabilities.xml")
	s.syncQuiet()
	p.put("a", doc(topic("a", "A of tomorrow")))
	tomorrow := p.change("a", 50, "")
	p.source(5, all, []string{tomorrow})
	s.syncQuiet()
	p.put("b", doc(topic("b", "B of today")))
	p.source(5, all, []string{tomorrow, p.change("b", 20, "")})
	s.syncQuiet()
	s.hasOf(p, "capabilities.xml", topic("a", "A of tomorrow"), topic("b", "B of today"))
	p.put("b", doc(topic("b", "B again")))
	p.source(5, all, []string{tomorrow, p.change("b", 20, ""), p.change("b", 30, "")})
	s.syncQuiet()
	s.hasOf(p, "capabilities.xml", topic("a", "A of tomorrow"), topic("b", "B again"))
	assert.Zero(t, s.sync().Applied)
}

// A Change List in the wrong order does not restore a resource deleted later: as a clock may have been set back, the
// served resource decides.
func TestChangesOutOfOrder(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	was, again := doc(topic("b", "B")), doc(topic("b", "B again"))
	p.put("a", doc(topic("a", "A")))
	p.put("b", was)
	all := []string{p.item("a", 1, ""), p.item("b", 1, "")}
	p.source(5, all, nil)
	s := p.following(t, "capabilities.xml")
	s.syncQuiet()
	changed, deleted := p.change("b", 10, stated(was)), p.item("b", 20, `change="deleted" datetime="`+second(20)+`"`)
	last := p.change("a", 30, "")
	p.put("b", doc(topic("b", ""))) // as deletions are served
	p.source(5, all, []string{changed, deleted, last})
	s.syncQuiet()
	s.hasOf(p, "capabilities.xml", topic("a", "A"))

	p.source(5, all, []string{deleted, last, changed})
	s.syncQuiet()
	s.hasOf(p, "capabilities.xml", topic("a", "A"))

	p.put("b", again)
	p.source(5, all, []string{changed, deleted, last, p.change("b", 15, stated(again))})
	s.syncQuiet()
	s.hasOf(p, "capabilities.xml", topic("a", "A"), topic("b", "B again"))
	assert.Zero(t, s.sync().Applied)
}

// A wrong hash is corrected, with the rest of the change unchanged.
func TestHashThatIsCorrected(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	right, wrong := doc(topic("a", "A now")), doc(topic("a", "another"))
	p.put("a", doc(topic("a", "A")))
	p.put("b", doc(topic("b", "B")))
	all := []string{p.item("a", 1, ""), p.item("b", 1, "")}
	p.source(5, all, nil)
	s := p.following(t, "capabilities.xml")
	s.syncQuiet()
	p.put("a", right)
	p.source(5, all, []string{p.change("a", 10, stated(wrong)), p.change("b", 11, "")})
	s.syncPasses(1)
	s.syncPasses(1)
	p.source(5, all, []string{p.change("a", 10, stated(right)), p.change("b", 11, "")})
	s.syncPasses(0)
	s.hasOf(p, "capabilities.xml", topic("a", "A now"), topic("b", "B"))
}

// A resource that is always an error of the server keeps back no other.
func TestResourceThatIsAnErrorOfTheServer(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("b", doc(topic("b", "B")))
	p.fail("a", http.StatusInternalServerError)
	p.source(5, []string{p.item("a", 1, ""), p.item("b", 1, "")}, nil)
	s := p.following(t, "capabilities.xml")
	s.syncPasses(1)
	s.hasOf(p, "capabilities.xml", topic("b", "B"))
	p.put("b", doc(topic("b", "B now")))
	p.source(5, []string{p.item("a", 1, ""), p.item("b", 1, "")}, []string{p.change("a", 10, ""), p.change("b", 11, "")})
	s.syncPasses(1)
	s.hasOf(p, "capabilities.xml", topic("b", "B now"))
	p.fail("a", 0)
	p.put("a", doc(topic("a", "A")))
	s.syncPasses(0)
	s.hasOf(p, "capabilities.xml", topic("a", "A"), topic("b", "B now"))
}
