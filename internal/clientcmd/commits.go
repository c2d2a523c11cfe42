package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"

	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
)

// commits lists the commits of a collection of the store: of local statements, a replica, or a published collection.
func (a *app) commits(ctx context.Context, name string, q history.Query) (list *history.List, err error) {
	q.Commits = true
	if q.Limit == 0 {
		q.Limit = math.MaxInt
	}
	err = a.DB.View(ctx, name, func(v *store.View) error {
		list, err = history.Changes(ctx, v, q)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		if _, unknown := a.client.Subscription(ctx, name); unknown != nil {
			return nil, unknown
		}
		return nil, fmt.Errorf("%s is followed, and its commits are not kept here; "+
			"\"tmshare-server log %[1]s --server URL\" asks its server", name)
	}
	return list, err
}

// WriteCommits writes the commits of a list as people read them.
func WriteCommits(w io.Writer, list *history.List) {
	for _, c := range list.Commits {
		fmt.Fprintf(w, "%s commit %d  %d added, %d updated, %d deleted", c.Time, c.Commit, c.Added, c.Updated, c.Deleted)
		if c.Moved > 0 {
			fmt.Fprintf(w, ", %d moved", c.Moved)
		}
		WriteAttribution(w, c.Author, c.Note)
	}
	if list.Pruned != "" {
		fmt.Fprintf(w, "earlier changes, up to %s, are no longer kept\n", list.Pruned)
	}
}

// WriteAttribution ends a line with the author and the note of a change.
func WriteAttribution(w io.Writer, author, note string) {
	if author != "" {
		fmt.Fprintf(w, " by %s", Printable(author))
	}
	if note != "" {
		fmt.Fprintf(w, ": %s", Printable(note))
	}
	fmt.Fprintln(w)
}

// Printable replaces control characters that a terminal might interpret.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
