package server

import (
	"context"
	"net/http"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// postTopics publishes what an XTM document says of some topics. The others stay
// as they are.
func (s *Server) postTopics(w http.ResponseWriter, r *http.Request) error {
	var named []fragment.Ref
	for _, si := range r.URL.Query()["topic"] {
		normal, err := iri.Normalize(si)
		if err != nil {
			return web.Problemf(http.StatusBadRequest, "?topic=%s is no subject identifier: %s", si, err)
		}
		named = append(named, fragment.Ref(normal))
	}
	return s.publish(w, r, publish.Publication{
		Read: s.bodyOf(w, r),
		Decide: func(ctx context.Context, c store.Collection, prior merge.State, tm *tmdm.TopicMap) (*fragment.Change, error) {
			return fragment.Replace(ctx, prior, tm, c.SP, named...)
		},
	})
}

// deleteTopic deletes the topic with the key in the URL, by an empty topic.
func (s *Server) deleteTopic(w http.ResponseWriter, r *http.Request) error {
	var ref fragment.Ref
	err := s.view(r, func(v *store.View) error {
		e, err := lastEntry(v, r)
		if err == nil {
			ref = e.TopicSI
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.publish(w, r, publish.Publication{Decide: func(_ context.Context, _ store.Collection, prior merge.State, _ *tmdm.TopicMap) (*fragment.Change, error) {
		t, err := prior.Topic(ref)
		if err != nil {
			return nil, err
		}
		if t != nil && t.TopicSI() != ref {
			return nil, web.Problemf(http.StatusConflict, "the identifier %s belongs to topic %s now: delete that", ref, t.TopicSI())
		}
		return deletion(prior, t)
	}})
}

// deleteTopicBySI deletes the topic that has the subject identifier ?si=.
func (s *Server) deleteTopicBySI(w http.ResponseWriter, r *http.Request) error {
	si, err := iri.Normalize(r.URL.Query().Get("si"))
	if err != nil {
		return web.Problemf(http.StatusBadRequest, "name a topic by its subject identifier: ?si=…")
	}
	err = s.view(r, func(v *store.View) error {
		t, err := v.Source().Topic(fragment.Ref(si))
		if t != nil || err != nil {
			return err
		}
		last, err := v.Last(fragment.Key(fragment.Ref(si)))
		if err == nil && last == nil {
			err = web.Problemf(http.StatusNotFound, "no topic of %s has the subject identifier %s", v.Name, si)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.publish(w, r, publish.Publication{Decide: func(_ context.Context, _ store.Collection, prior merge.State, _ *tmdm.TopicMap) (*fragment.Change, error) {
		t, err := prior.Topic(fragment.Ref(si))
		if err != nil {
			return nil, err
		}
		return deletion(prior, t)
	}})
}

// deletion deletes a topic, or nil: what is not there need not be deleted.
func deletion(prior merge.State, t *fragment.Topic) (*fragment.Change, error) {
	if t == nil {
		return &fragment.Change{}, nil
	}
	mentions, err := prior.Mentions(t.TopicSI())
	if err != nil {
		return nil, err
	}
	return fragment.Delete(prior, t.TopicSI(), mentions)
}
