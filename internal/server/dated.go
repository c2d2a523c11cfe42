package server

import (
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// noteState sets in an answer the time up to which it has all changes of the origin; nothing if that is not known. The
// last call counts.
func noteState(r *http.Request, at time.Time) {
	stated := http.Header{}
	if !at.IsZero() {
		stated.Set(feeds.CheckedHeader, feeds.FormatTime(at))
	}
	web.RecorderOf(r).Stated = stated
}

// serveOpenings serves the openings of the database, the newest first. A replica has those of its origin.
func serveOpenings(w http.ResponseWriter, _ *http.Request, v *store.View) error {
	type opening struct {
		ID string `json:"id"`
		At string `json:"at,omitempty"`
	}
	list := struct {
		Openings []opening `json:"openings"`
	}{[]opening{}}
	if v.Replica != nil {
		opened, err := v.Opened()
		if err != nil {
			return err
		}
		for _, id := range opened {
			list.Openings = append(list.Openings, opening{ID: id})
		}
		return web.WriteJSON(w, http.StatusOK, list)
	}
	all, err := v.Openings()
	for _, o := range all {
		list.Openings = append(list.Openings, opening{o.ID.String(), feeds.FormatTime(o.At)})
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, list)
}
