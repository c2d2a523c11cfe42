package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
)

// Differences are the topics that differ between two states of a collection.
type Differences struct {
	Collection string           `json:"collection"`
	From       string           `json:"from"` // the time of the last change of each state
	To         string           `json:"to"`
	Topics     []history.Change `json:"topics"`
}

// The numbers of changes that an answer lists: by default, at most, and at most with their differences in words.
const (
	someChanges    = 100
	mostChanges    = 1000
	mostDifference = 100
)

const jsonType = "application/json"

// history serves the changes of a collection, the newest first. Parameters: ?si= one topic, ?since= not before a time,
// ?before= before the entry with a sequence, ?limit= the maximum number, ?words=false without the differences,
// ?commits=true commits instead of changes, ?author= of that author, ?lang= titles in these languages.
func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	q, err := parseHistory(r)
	if err != nil {
		return err
	}
	return s.View(r, func(v *store.View) error {
		if r.URL.Query().Has("si") {
			if q.TopicSI, err = Find(v, r, true); err != nil {
				return err
			}
		}
		list, err := history.Changes(r.Context(), v, q)
		if err != nil {
			return err
		}
		return s.Answers.WriteSmall(w, r, jsonType, CacheShortly, func(to io.Writer) error { return encodeJSON(to, list) })
	})
}

func parseHistory(r *http.Request) (q history.Query, err error) {
	query := r.URL.Query()
	since, err := parseTimes(r, "since")
	if err != nil {
		return q, err
	}
	if len(since) > 0 {
		q.Since = slices.MaxFunc(since, time.Time.Compare)
	}
	if q.Before, err = web.Number(r, "before", 0); err != nil {
		return q, err
	}
	limit, err := web.Number(r, "limit", someChanges)
	if err != nil {
		return q, err
	}
	q.Words, q.Languages = true, languagesOf(r)
	if query.Has("words") {
		if q.Words, err = strconv.ParseBool(query.Get("words")); err != nil {
			return q, web.Problemf(http.StatusBadRequest, "?words= is true or false")
		}
	}
	q.Author = query.Get("author")
	if query.Has("commits") {
		if q.Commits, err = strconv.ParseBool(query.Get("commits")); err != nil || q.Commits && q.Words {
			return q, web.Problemf(http.StatusBadRequest, "?commits= is true or false, and goes with words=false")
		}
	}
	most := uint64(mostChanges)
	if q.Words {
		most = mostDifference
	}
	q.Limit = int(min(limit, most))
	return q, nil
}

// languagesOf returns the languages of titles in an answer, the best first: ?lang=.
func languagesOf(r *http.Request) titles.Languages { return titles.Accepted(r.URL.Query().Get("lang")) }

// differences streams the topics that differ between two states: those at the two times ?at=, or at one time and now.
func (s *Server) differences(w http.ResponseWriter, r *http.Request) error {
	times, err := parseTimes(r, "at")
	if err != nil {
		return err
	}
	if len(times) < 1 || len(times) > 2 {
		return web.Problemf(http.StatusBadRequest, "give one time, ?at=, to compare with what is now, or two")
	}
	return s.View(r, func(v *store.View) error {
		states := []history.Moment{{}, history.Now(v)}
		for i, t := range times {
			if states[i], err = history.Asked(v, t, s.Now()); err != nil {
				return err
			}
		}
		from, to := states[0], states[1]
		if from.Seq > to.Seq {
			return web.Problemf(http.StatusBadRequest, "the first ?at= is the earlier one: %s is after %s",
				feeds.FormatTime(from.Updated), feeds.FormatTime(to.Updated))
		}
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Content-Type", jsonType)
		made := web.Validator{Tag: s.StateTag(r, fmt.Sprint(StateOf(&v.Collection), from.Seq, to.Seq, languagesOf(r))),
			Modified: web.RecorderOf(r).Settled}
		return s.Answers.WriteRendered(w, r, made, func(out io.Writer) error {
			return s.writeDifferences(out, r, v, from, to)
		})
	})
}

func (s *Server) writeDifferences(out io.Writer, r *http.Request, v *store.View, from, to history.Moment) error {
	b := bufio.NewWriter(out)
	begun := false
	begin := func() error { // only once the first is known: until then an error can still be the answer
		if begun {
			return nil
		}
		begun = true
		head, err := json.Marshal(Differences{v.Name, feeds.FormatTime(from.Updated), feeds.FormatTime(to.Updated), nil})
		if err != nil {
			return err
		}
		_, err = b.Write(head[:len(head)-len("null}")])
		return err
	}
	separator := byte('[')
	for c, err := range history.Differences(r.Context(), v, s.Store.Scratch(), from, to, "", languagesOf(r)...) {
		if err == nil {
			err = begin()
		}
		if err == nil {
			err = b.WriteByte(separator)
		}
		if err == nil {
			separator = ','
			err = encodeJSON(b, c)
		}
		if err != nil {
			return err
		}
	}
	if err := begin(); err != nil {
		return err
	}
	end := "]}\n"
	if separator == '[' {
		end = "[]}\n"
	}
	_, _ = b.WriteString(end) // Flush returns the error
	return b.Flush()
}

// encodeJSON writes a value as JSON, without escapes for the characters of markup.
func encodeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
