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

// standing returns what the server has of a collection that moves.
func (c *Client) standing(ctx context.Context, name string) (s store.Standing, err error) {
	if _, err = c.ask(ctx, request{method: http.MethodGet, path: mapPath(name) + "/move"}, &s); err == nil {
		c.store = s.Store
	}
	var r *Refusal
	if errors.As(err, &r) && (r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed) {
		return s, conflict("the server at %s moves no collections: it is older, or has not the extension partitions", c.addr)
	}
	return s, err
}

// step has the server do a step of a move. Another store than that of the standing refuses it.
func (c *Client) step(ctx context.Context, name, step string, query url.Values) (s store.Standing, err error) {
	query.Set("step", step)
	if c.store != uuid.Nil {
		query.Set("store", c.store.String())
	}
	_, err = c.ask(ctx, request{method: http.MethodPost, path: mapPath(name) + "/move", query: query}, &s)
	return s, err
}

func ofMove(move uuid.UUID) url.Values { return url.Values{"move": {move.String()}} }

// standings returns what two servers have of a collection.
func standings(ctx context.Context, from, to *Client, name string) (source, target store.Standing, err error) {
	if source, err = from.standing(ctx, name); err != nil {
		return source, target, err
	}
	if target, err = to.standing(ctx, name); err != nil {
		return source, target, err
	}
	switch {
	case source.Store == target.Store:
		err = conflict("%s and %s have the same store", from.addr, to.addr)
	case source.BaseURL != target.BaseURL:
		err = conflict("the base URL of %s is %s, and that of %s is %s: give both servers the same --base-url", from.addr,
			source.BaseURL, to.addr, target.BaseURL)
	}
	return source, target, err
}

func same(a, b *uuid.UUID) bool { return a != nil && b != nil && *a == *b }

// Move moves a collection from one server to another. Any step may have been done before. If the target refuses it, the
// source goes on as before.
func Move(ctx context.Context, from, to *Client, name string) (*Moved, error) {
	moved := &Moved{Collection: name, To: to.addr}
	source, target, err := standings(ctx, from, to, name)
	switch {
	case err != nil:
		return nil, err
	case source.Epoch == nil && same(source.Moved, target.Epoch):
		return moved, nil
	case source.Epoch == nil && source.Moved != nil:
		return nil, conflict("%s was moved from %s to another server already, and is not at %s", name, from.addr, to.addr)
	case source.Epoch == nil:
		return nil, fmt.Errorf("%s has no collection %q", from.addr, name)
	case target.Epoch != nil && !same(source.Epoch, target.Epoch):
		return nil, conflict("there is another collection %s at %s: rename one of them", name, to.addr)
	case target.Epoch == nil && target.Arrived != nil && !same(source.Epoch, target.Arrived):
		return nil, conflict("another collection %s is being moved to %s", name, to.addr)
	}
	if source, err = from.step(ctx, name, "depart", url.Values{"to": {to.addr}}); err != nil {
		return nil, err
	}
	leaving := source.Leaving
	if !leaving.Left && !same(&leaving.Move, target.Move) {
		if err := send(ctx, from, to, name, leaving.Move); err != nil {
			var refused *Refusal
			if errors.As(err, &refused) && refused.Status < 500 {
				return nil, errors.Join(err, keep(ctx, from, to, name, leaving.Move, moved))
			}
			return nil, unfinished(name, err)
		}
	}
	finish := func() error {
		if _, err := from.step(ctx, name, "left", ofMove(leaving.Move)); err != nil {
			return err
		}
		admit := ofMove(leaving.Move)
		admit.Set("epoch", source.Epoch.String())
		at, err := to.step(ctx, name, "admit", admit)
		if err == nil && !same(at.Epoch, source.Epoch) && !same(at.Moved, source.Epoch) {
			err = conflict("%s does not have the collection", to.addr)
		}
		if err != nil {
			return err
		}
		_, err = from.step(ctx, name, "gone", ofMove(leaving.Move))
		return err
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
func send(ctx context.Context, from, to *Client, name string, move uuid.UUID) error {
	query := ofMove(move)
	query.Set("store", from.store.String())
	r := request{method: http.MethodGet, path: mapPath(name) + "/move/rows", query: query,
		accept: "application/octet-stream"}
	res, err := from.send(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body := &noticed{Reader: res.Body}
	var target store.Standing
	_, err = to.ask(ctx, request{method: http.MethodPut, path: mapPath(name) + "/move/rows",
		query: url.Values{"store": {to.store.String()}},
		body:  &Document{Reader: io.NopCloser(body), mediaType: "application/octet-stream"}}, &target)
	if body.err != nil {
		return from.unanswered(&r, body.err)
	}
	return err
}

// CancelMove ends a move: the source is written again, and the target has nothing of it. reach returns a client for it.
func CancelMove(ctx context.Context, from *Client, reach func(address string) (*Client, error),
	name string) (*Moved, error) {
	moved := &Moved{Collection: name, Kept: true}
	source, err := from.standing(ctx, name)
	if err != nil {
		return nil, err
	}
	switch {
	case source.Moved != nil && source.Epoch == nil:
		return nil, conflict("%s was moved from %s to another server already: move it back from there", name, from.addr)
	case source.Epoch == nil:
		return nil, fmt.Errorf("%s has no collection %q", from.addr, name)
	case source.Leaving == nil:
		return moved, nil
	}
	to, err := reach(source.Leaving.To)
	if err != nil {
		return nil, err
	}
	move := source.Leaving.Move
	if !source.Leaving.Left {
		return moved, keep(ctx, from, to, name, move, moved)
	}
	target, err := to.standing(ctx, name)
	if err != nil {
		return nil, err
	}
	if same(&move, target.Move) || same(source.Epoch, target.Epoch) || same(source.Epoch, target.Moved) {
		return nil, conflict("%s is at %s already: run the move again without --cancel, which completes it", name, to.addr)
	}
	q := ofMove(move)
	q.Set("lost", "true")
	_, err = from.step(ctx, name, "keep", q)
	return moved, err
}

// keep ends a move at the source first, and then at the target: in the other order a second command could complete it
// meanwhile.
func keep(ctx context.Context, from, to *Client, name string, move uuid.UUID, moved *Moved) error {
	if _, err := from.step(ctx, name, "keep", ofMove(move)); err != nil {
		return err
	}
	if _, err := to.step(ctx, name, "drop", ofMove(move)); err != nil {
		moved.Warning = fmt.Sprintf("%s keeps the rows that it has of it until the next move: %s", to.addr, err)
	}
	return nil
}
