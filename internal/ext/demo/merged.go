package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// mergedAtServer merges the server's maps by XTM's own means, with neither feeds
// nor the update algorithm: a document that names each with a mergeMap.
func (d *demo) mergedAtServer(ctx context.Context) (*tmdm.TopicMap, error) {
	collections, err := d.server.Store.Collections(ctx)
	if err != nil {
		return nil, err
	}
	byLocator := map[tmdm.Locator]string{}
	var doc strings.Builder
	doc.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	for _, c := range collections {
		byLocator[tmdm.Locator(c.SP)] = c.Name
		fmt.Fprintf(&doc, `<mergeMap href="%s"/>`, c.SP)
	}
	doc.WriteString(`</topicMap>`)
	return xtm.Read(ctx, strings.NewReader(doc.String()), xtm.Options{
		Base: tmdm.Locator(d.server.BaseURL),
		Loader: func(loc tmdm.Locator) (io.ReadCloser, error) {
			var b bytes.Buffer
			err := d.server.Store.View(ctx, byLocator[loc], func(v *store.View) error { return v.WriteSnapshot(&b, xtm.V21) })
			return io.NopCloser(&b), err
		},
	})
}
