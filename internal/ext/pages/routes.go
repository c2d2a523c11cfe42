package pages

import (
	"net/http"

	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// ofView answers requests about a collection as of one state.
type ofView = func(http.ResponseWriter, *http.Request, *store.View) error

// Routes adds the addresses of pages: get takes an address, viewed makes a handler that opens the collection in it.
func (p *Pages) Routes(get func(path string, h web.Handler), viewed func(ofView) web.Handler) {
	get("/", p.Home)
	get("/about", p.Home)
	get("/pages/{name}", p.Style)
	get("/topicmaps"+Ending, p.Alone(p.Overview))

	of := func(path string, h ofView) { get("/topicmaps/{map}"+path, viewed(h)) }
	get("/topicmaps/{map}"+Ending, p.Alone(viewed(p.Map)))
	of("/about", p.About)
	of("/types"+Ending, p.Types)
	of("/hierarchies/{key:[a-z2-7]{26}}"+Ending, p.Hierarchy)
	of("/"+minted, p.Minted)
	get("/topicmaps/{map}/fragments"+Ending, p.Alone(viewed(p.Changes)))
	of("/fragments/{id:[0-9a-f-]{36}}"+Ending, p.Change)
	of("/fragments/archive/{history:[0-9a-f-]{36}}-{n:"+addresses.SeqPattern+"}"+Ending, p.Document)
	of("/history"+Ending, p.History)
	get("/topicmaps/{map}/snapshots"+Ending, p.Alone(viewed(p.Snapshots)))
	get("/topicmaps/{map}/search", p.Beside(viewed(p.Search)))
	of("/search"+Ending, p.SearchPage)
	of(descriptionPath, p.Description)
	of("/topics"+Ending, p.Find)
	of("/topics/{key:[a-z2-7]{26}}"+Ending, p.Topic)
}

// minted matches the identifiers that a server gives to topics (see [fragment.NameTopics]), behind the address of a
// map.
const minted = "{minted:(?:[0-9a-f]{12}/)?topic/.+}"
