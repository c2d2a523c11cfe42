package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/store"
)

// Moved is the result of Move and CancelMove.
type Moved struct {
	Collection string `json:"collection"`
	To         string `json:"to,omitempty"`   // where it is now, if it was moved
	Kept       bool   `json:"kept,omitempty"` // the move was ended
	Warning    string `json:"warning,omitempty"`
}

func conflict(format string, args ...any) error {
	return &cli.ExitError{Code: cli.Conflict, Err: fmt.Errorf(format, args...)}
}

// end is one of the two servers of a move.
type end struct {
	*Client
	name           string // of the collection
	store.Standing        // as the server stated it last; without a store, it was not asked
}

func (e *end) path() string { return mapPath(e.name) + "/move" }

// meant returns a query that each store but that of the standing refuses.
func (e *end) meant(query url.Values) url.Values {
	if e.Store != uuid.Nil {
		query.Set("store", e.Store.String())
	}
	return query
}

// look asks for the standing.
func (e *end) look(ctx context.Context) error {
	_, err := e.ask(ctx, request{method: http.MethodGet, path: e.path()}, &e.Standing)
	r, is := errors.AsType[*Refusal](err)
	if is && (r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed) {
		return conflict("the server at %s moves no collections: it is older, or has not the extension partitions", e.addr)
	}
	return err
}

// step has the server do a step of the move.
func (e *end) step(ctx context.Context, step string, query url.Values) error {
	query.Set("step", step)
	var now store.Standing
	_, err := e.ask(ctx, request{method: http.MethodPost, path: e.path(), query: e.meant(query)}, &now)
	if err == nil {
		e.Standing = now
	}
	return err
}

func ofMove(move uuid.UUID) url.Values { return url.Values{"move": {move.String()}} }

// lookAtBoth asks two servers for what they have of a collection.
func lookAtBoth(ctx context.Context, from, to *end) error {
	for _, e := range []*end{from, to} {
		if err := e.look(ctx); err != nil {
			return err
		}
	}
	switch {
	case from.Store == to.Store:
		return conflict("%s and %s have the same store", from.addr, to.addr)
	case from.BaseURL != to.BaseURL:
		return conflict("the base URL of %s is %s, and that of %s is %s: give both servers the same --base-url", from.addr,
			from.BaseURL, to.addr, to.BaseURL)
	}
	return nil
}

func same(a, b *uuid.UUID) bool { return a != nil && b != nil && *a == *b }

// Move moves a collection from one server to another. Any step may have been done before. If the target refuses it, the
// source goes on as before.
func Move(ctx context.Context, source, target *Client, name string) (*Moved, error) {
	from, to := &end{Client: source, name: name}, &end{Client: target, name: name}
	moved := &Moved{Collection: name, To: to.addr}
	switch err := lookAtBoth(ctx, from, to); {
	case err != nil:
		return nil, err
	case from.Epoch == nil && same(from.Moved, to.Epoch):
		return moved, nil
	case from.Epoch == nil && from.Moved != nil:
		return nil, conflict("%s was moved from %s to another server already, and is not at %s", name, from.addr, to.addr)
	case from.Epoch == nil:
		return nil, fmt.Errorf("%s has no collection %q", from.addr, name)
	case to.Epoch != nil && !same(from.Epoch, to.Epoch):
		return nil, conflict("there is another collection %s at %s: rename one of them", name, to.addr)
	case to.Epoch == nil && to.Arrived != nil && !same(from.Epoch, to.Arrived):
		return nil, conflict("another collection %s is being moved to %s", name, to.addr)
	}
	if err := from.step(ctx, "depart", url.Values{"to": {to.addr}}); err != nil {
		return nil, err
	}
	move, epoch := from.Leaving.Move, from.Epoch
	if !from.Leaving.Left && !same(&move, to.Move) {
		if err := send(ctx, from, to, move); err != nil {
			if refused, is := errors.AsType[*Refusal](err); is &&
				(refused.Status < 500 || refused.Status == http.StatusInsufficientStorage) {
				return nil, errors.Join(err, keep(ctx, from, to, move, moved))
			}
			return nil, unfinished(name, err)
		}
	}
	finish := func() error {
		if err := from.step(ctx, "left", ofMove(move)); err != nil {
			return err
		}
		admit := ofMove(move)
		admit.Set("epoch", epoch.String())
		if err := to.step(ctx, "admit", admit); err != nil {
			return err
		}
		if !same(to.Epoch, epoch) && !same(to.Moved, epoch) {
			return conflict("%s does not have the collection", to.addr)
		}
		return from.step(ctx, "gone", ofMove(move))
	}
	if err := finish(); err != nil {
		return nil, unfinished(name, err)
	}
	return moved, nil
}

func unfinished(name string, err error) error {
	return fmt.Errorf("%w. %s is read meanwhile, and not written: run the command again to complete the move, or with "+
		"--cancel to end it", err, name)
}

// send has the target receive all that the source sends.
func send(ctx context.Context, from, to *end, move uuid.UUID) error {
	r := request{method: http.MethodGet, path: from.path() + "/rows", query: from.meant(ofMove(move)),
		accept: "application/octet-stream"}
	res, err := from.send(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body := &noticed{Reader: res.Body}
	_, err = to.ask(ctx, request{method: http.MethodPut, path: to.path() + "/rows", query: to.meant(url.Values{}),
		body: &Document{Reader: io.NopCloser(body), mediaType: "application/octet-stream"}}, &to.Standing)
	if body.err != nil {
		return from.unanswered(&r, body.err)
	}
	return err
}

// CancelMove ends a move: the source is written again, and the target has nothing of it. reach returns a client for it.
// If the first server is the target, it only forgets what has arrived: the source still has it.
func CancelMove(ctx context.Context, source *Client, reach func(address string) (*Client, error),
	name string) (*Moved, error) {
	from, moved := &end{Client: source, name: name}, &Moved{Collection: name, Kept: true}
	switch err := from.look(ctx); {
	case err != nil:
		return nil, err
	case from.Epoch == nil && from.Move != nil:
		moved.Kept = false
		return moved, from.step(ctx, "drop", ofMove(*from.Move))
	case from.Moved != nil && from.Epoch == nil:
		return nil, conflict("%s was moved from %s to another server already: move it back from there", name, from.addr)
	case from.Epoch == nil:
		return nil, fmt.Errorf("%s has no collection %q", from.addr, name)
	case from.Leaving == nil:
		return moved, nil
	}
	target, err := reach(from.Leaving.To)
	if err != nil {
		return nil, err
	}
	to, move := &end{Client: target, name: name}, from.Leaving.Move
	if !from.Leaving.Left {
		return moved, keep(ctx, from, to, move, moved)
	}
	if err := to.look(ctx); err != nil {
		return nil, err
	}
	if same(&move, to.Move) || same(from.Epoch, to.Epoch) || same(from.Epoch, to.Moved) {
		return nil, conflict("%s is at %s already: run the move again without --cancel, which completes it", name, to.addr)
	}
	q := ofMove(move)
	q.Set("lost", "true")
	return moved, from.step(ctx, "keep", q)
}

// keep ends a move at the source first, and then at the target: in the other order a second command could complete it
// meanwhile.
func keep(ctx context.Context, from, to *end, move uuid.UUID, moved *Moved) error {
	if err := from.step(ctx, "keep", ofMove(move)); err != nil {
		return err
	}
	if err := to.step(ctx, "drop", ofMove(move)); err != nil {
		moved.Warning = fmt.Sprintf("%s keeps the rows that it has of it until the next move: %s", to.addr, err)
	}
	return nil
}
