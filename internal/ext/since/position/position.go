// Package position has the positions in the fragments feed of SDShare 2012, which begins at a time and has pages.
package position

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
)

// Position is a requested position: after an entry, among the entries not before a time.
type Position struct {
	From  time.Time // in whole microseconds, as times of entries are
	After uint64    // sequence of the last entry of the page before; 0: the first page
	Epoch uuid.UUID // of the collection that gave the position out
}

// Parse reads the query of the fragments feed. It returns nil for the feed
// as such.
func Parse(query string) (*Position, error) {
	q, err := url.ParseQuery(query)
	switch {
	case err != nil:
		return nil, web.Problemf(http.StatusBadRequest, "the query cannot be read: %s", err)
	case q.Has("page"):
		page, err := parsePage(q.Get("page"))
		if err != nil {
			return nil, web.Problemf(http.StatusBadRequest,
				"page is no position of this server; follow the next links, from ?since= on")
		}
		return page, nil
	case q.Has("since"):
		from, err := parseTime(q.Get("since"))
		if err != nil {
			return nil, web.Problemf(http.StatusBadRequest, "?since=: %s", err)
		}
		return &Position{From: from}, nil
	}
	return nil, nil
}

// parseTime reads a time in whole microseconds, as those of entries are.
func parseTime(text string) (time.Time, error) {
	t, err := history.ParseTime(text)
	if err != nil {
		return t, err
	}
	if whole := t.Truncate(time.Microsecond); whole.Before(t) {
		t = whole.Add(time.Microsecond)
	}
	if !hasYear(t) {
		return t, errors.New("in UTC its year has not four digits")
	}
	return t, nil
}

func hasYear(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// Page returns the position as it stands in URLs: epoch, time, and sequence.
func (p *Position) Page() string {
	b := append([]byte(nil), p.Epoch[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(p.From.UnixMicro()))
	b = binary.BigEndian.AppendUint64(b, p.After)
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePage(text string) (*Position, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 32 {
		return nil, errors.New("no position")
	}
	p := &Position{After: binary.BigEndian.Uint64(b[24:])}
	copy(p.Epoch[:], b)
	p.From = time.UnixMicro(int64(binary.BigEndian.Uint64(b[16:]))).UTC()
	if p.After == 0 || !hasYear(p.From) {
		return nil, errors.New("no position")
	}
	return p, nil
}
