package partitions

import (
	"bufio"
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// mover answers the requests of "tmshare-server collections move", at the source and at the target.
type mover struct {
	*server.Server
	store *store.DB
}

const movePath = "/topicmaps/{map:[^./]+}/move"

// moveRoutes adds the addresses for moving collections between stores. They are for those who may write.
func moveRoutes(s *server.Server) func(handle func(path string, h web.Handler, methods ...string)) {
	db, ok := s.Store.(*store.DB)
	m := mover{s, db}
	return func(handle func(path string, h web.Handler, methods ...string)) {
		if !ok {
			return
		}
		handle(movePath, s.Authorized(m.standing), "GET", "HEAD")
		handle(movePath+"/rows", m.meant(m.send), "GET", "HEAD")
		handle(movePath+"/rows", m.meant(m.receive), "PUT")
		handle(movePath, m.meant(m.step), "POST")
	}
}

// meant returns a handler that refuses requests for another store: another server may answer at an address meanwhile.
func (m mover) meant(h web.Handler) web.Handler {
	return m.Authorized(func(w http.ResponseWriter, r *http.Request) error {
		if wanted := r.URL.Query().Get("store"); wanted != "" && wanted != m.Store.Node().String() {
			return web.Problemf(http.StatusConflict, "another server answers at this address now: begin again")
		}
		return h(w, r)
	})
}

// standing answers with what the store has of a collection.
func (m mover) standing(w http.ResponseWriter, r *http.Request) error {
	standing, err := m.store.StandingOf(r.Context(), web.Var(r, "map"))
	if err != nil {
		return err
	}
	standing.BaseURL = m.BaseURL
	return web.WriteJSON(w, http.StatusOK, standing)
}

// asked is a step of a move that is asked for.
type asked struct {
	name, to    string
	move, epoch uuid.UUID
	lost        bool
}

// steps are those of a move, and of its end.
var steps = map[string]func(context.Context, mover, asked) error{
	"depart": func(ctx context.Context, m mover, a asked) error {
		kept, err := m.Store.Dependents(ctx, a.name)
		if err != nil {
			return err
		}
		if len(kept) > 0 {
			return web.Problemf(http.StatusConflict, "%s is kept in step with %s: end that first (%s)", kept[0].Name, a.name,
				kept[0].Ends)
		}
		c, err := m.store.DepartCollection(ctx, a.name, a.to)
		if err == nil {
			m.Logger.Info("moving a collection to another server", "collection", a.name, "to", a.to, "move", c.Leaving.Move)
		}
		return err
	},
	"keep": func(ctx context.Context, m mover, a asked) error {
		_, err := m.store.KeepCollection(ctx, a.name, a.move, a.lost)
		return err
	},
	"left": func(ctx context.Context, m mover, a asked) error {
		_, err := m.store.LeaveCollection(ctx, a.name, a.move)
		return err
	},
	"gone": func(ctx context.Context, m mover, a asked) error {
		err := m.store.RemoveLeft(ctx, a.name, a.move)
		if err == nil {
			m.Logger.Info("a collection was moved to another server", "collection", a.name)
		}
		return err
	},
	"admit": func(ctx context.Context, m mover, a asked) error {
		err := m.store.Admit(ctx, a.name, a.move, a.epoch)
		if err == nil {
			m.Logger.Info("a collection has come from another server", "collection", a.name)
		}
		return err
	},
	"drop": func(ctx context.Context, m mover, a asked) error { return m.store.DropArrival(ctx, a.name, a.move) },
}

// step does a step, and answers with what the store has then.
func (m mover) step(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	do := steps[q.Get("step")]
	if do == nil {
		return web.Problemf(http.StatusBadRequest, "?step=%s: there is no such step here", q.Get("step"))
	}
	a := asked{name: web.Var(r, "map"), to: q.Get("to"), lost: q.Get("lost") == "true"}
	for name, id := range map[string]*uuid.UUID{"move": &a.move, "epoch": &a.epoch} {
		var err error
		if *id, err = uuid.Parse(q.Get(name)); q.Has(name) && err != nil {
			return web.Problemf(http.StatusBadRequest, "?%s=: %s", name, err)
		}
	}
	err := m.Changing(r.Context(), a.name, func() error { return do(r.Context(), m, a) })
	if err != nil {
		return err
	}
	return m.standing(w, r)
}

// send answers with all rows and files of a collection.
func (m mover) send(w http.ResponseWriter, r *http.Request) error {
	name := web.Var(r, "map")
	move, err := uuid.Parse(r.URL.Query().Get("move"))
	if err != nil {
		return web.Problemf(http.StatusBadRequest, "move: %s", err)
	}
	return m.store.ReadDeparture(r.Context(), name, move, func(d *store.Departure) error {
		key, err := publicKey(&d.Collection)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Cache-Control", "no-store")
		return send(w, &header{keys.Format, m.Store.Node(), m.BaseURL, !m.IsForAll(&d.Collection), key, d.Arrival}, d)
	})
}

// publicKey returns the public key that checks the log of a collection; "" if it is not signed.
func publicKey(c *store.Collection) (string, error) {
	if c.Sign == "" {
		return "", nil
	}
	key, err := checkpoint.ReadKey(c.Sign)
	if err != nil {
		return "", web.Problemf(http.StatusConflict, "the key of %s cannot be read here: %s", c.Name, err)
	}
	return key.Public, nil
}

// receive keeps a collection that another server has sent.
func (m mover) receive(w http.ResponseWriter, r *http.Request) error {
	in := &received{in: bufio.NewReaderSize(r.Body, web.WriteBuffer)}
	h, err := in.header()
	if err != nil {
		return err
	}
	c := &h.Arrival.Collection
	if err := m.mayReceive(r.Context(), h, web.Var(r, "map")); err != nil {
		return err
	}
	err = m.store.Arrive(r.Context(), h.Arrival, in.rows(), func() (string, error) {
		return in.rest(func(name string) (files.Writer, error) { return m.store.TakeFile(r.Context(), c, name) })
	})
	if err != nil {
		return err
	}
	m.Logger.Info("a collection has arrived from another server", "collection", c.Name, "move", h.Arrival.Move)
	return m.standing(w, r)
}

// mayReceive returns the reason why a collection cannot be moved here.
func (m mover) mayReceive(ctx context.Context, h *header, name string) error {
	refuse := func(format string, args ...any) error { return web.Problemf(http.StatusConflict, format, args...) }
	c := &h.Arrival.Collection
	key, err := publicKey(c)
	switch {
	case c.Name != name:
		return refuse("%s was sent, and not %s", c.Name, name)
	case h.Format != keys.Format:
		return refuse("the source has the format %s, and this server %s: run the same version at both", h.Format, keys.Format)
	case h.BaseURL != m.BaseURL:
		return refuse("the base URL here is %s, and at the source %s: give both servers the same --base-url", m.BaseURL,
			h.BaseURL)
	case h.Store == m.Store.Node():
		return refuse("both servers have the same store")
	case h.Closed && m.IsForAll(c):
		return refuse("%s is read with a token only, and here it would be read by all: start this server with "+
			"--read-token-file for it", name)
	case err != nil:
		return err
	case key != h.Key:
		return refuse("the log of %s is signed with another key there than %s has here: copy the file", name, c.Sign)
	}
	all, err := m.Store.Collections(ctx)
	for i := range all {
		if err == nil && all[i].SP == c.SP && all[i].Replica == nil {
			err = refuse("%s is the source locator prefix of the collection %q here: topics of the two could be merged",
				c.SP, all[i].Name)
		}
	}
	return err
}
