package pages

import (
	"net/http"

	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// routes adds the addresses of pages.
func (p *Pages) routes(get func(path string, h web.Handler)) {
	get("/", p.Home)
	get("/about", p.Home)
	get("/pages/{name}", p.Style)
	get("/topicmaps"+Ending, p.Alone(p.Overview))

	of := func(path string, h func(http.ResponseWriter, *http.Request, *store.View) error) {
		get("/topicmaps/{map}"+path, p.Viewed(h))
	}
	get("/topicmaps/{map}"+Ending, p.Alone(p.Viewed(p.Map)))
	of("/about", p.About)
	of("/types"+Ending, p.Types)
	of("/hierarchies/{key:[a-z2-7]{26}}"+Ending, p.Hierarchy)
	get("/topicmaps/{map}/fragments"+Ending, p.Alone(p.Viewed(p.Changes)))
	of("/fragments/{id:[0-9a-f-]{36}}"+Ending, p.Change)
	of("/fragments/archive/{history:[0-9a-f-]{36}}-{n:"+addresses.SeqPattern+"}"+Ending, p.Document)
	of("/history"+Ending, p.History)
	get("/topicmaps/{map}/snapshots"+Ending, p.Alone(p.Viewed(p.Snapshots)))
	get("/topicmaps/{map}/search", p.beside(p.Viewed(p.Search)))
	of("/search"+Ending, p.SearchPage)
	of(descriptionPath, p.Description)
	of("/topics"+Ending, p.Find)
	of("/topics/{key:[a-z2-7]{26}}"+Ending, p.Topic)
}
