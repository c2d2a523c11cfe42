// Package problems maps errors to the texts and statuses of answers.
package problems

import (
	"errors"
	"io/fs"
	"net/http"
	"syscall"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// Problem is the answer to a request that fails, with the reason.
type Problem struct {
	web.Problem
	Users    []string  `json:"users,omitempty"` // what uses a topic that cannot be deleted
	HeldBack *HeldBack `json:"heldBack,omitempty"`
}

// HeldBack counts the topics of a map, and the changes of a refused new version that would lose too many of them: see
// [losses.Measure].
type HeldBack struct {
	Topics  int `json:"topics"`
	Added   int `json:"added"`
	Updated int `json:"updated"`
	Deleted int `json:"deleted"`
	Emptied int `json:"emptied"` // keep none of their names and occurrences
	Untyped int `json:"untyped"` // lose their last type

	Statements     int    `json:"statements"`     // of the map; an association counts for each player
	StatementsLost int    `json:"statementsLost"` // of these
	Losses         []Loss `json:"losses"`         // the first topics that would be lost
	MaxDelete      string `json:"maxDelete"`      // the least limit that allows it

	Renumbered int `json:"renumbered,omitempty"` // topics with other ids than before, which may be all of it
}

// Lines names the losses, each in a line.
func (h *HeldBack) Lines() []string {
	e := losses.TooManyError{Measure: losses.Measure{Deleted: h.Deleted, Emptied: h.Emptied, Untyped: h.Untyped},
		Renumbered: h.Renumbered}
	for _, l := range h.Losses {
		e.First = append(e.First, losses.Loss{TopicSI: fragment.Ref(l.TopicSI), Title: l.Title, Kind: losses.Kind(l.Lost)})
	}
	return e.Lines()
}

// Loss is a topic that a new version would lose, and the kind of loss: "deleted", "emptied" or "untyped".
type Loss struct {
	TopicSI string `json:"topicSI"`
	Title   string `json:"title"`
	Lost    string `json:"lost"`
}

// heldBack refuses a version that would lose too much.
func heldBack(e *losses.TooManyError) *Problem {
	problem := &HeldBack{
		Topics: e.Topics, Added: e.Added, Updated: e.Updated, Deleted: e.Deleted, Emptied: e.Emptied, Untyped: e.Untyped,
		Statements: e.Statements, StatementsLost: e.Gone, Losses: []Loss{}, MaxDelete: losses.Allowing(&e.Measure),
		Renumbered: e.Renumbered,
	}
	for _, l := range e.First {
		problem.Losses = append(problem.Losses, Loss{l.TopicSI.String(), l.Title, string(l.Kind)})
	}
	p := web.Problemf(http.StatusConflict, "%s. To publish it all the same, send it with the header %s: %s", e,
		MaxDeleteHeader, problem.MaxDelete)
	p.Lines = e.Lines()
	return &Problem{Problem: *p, HeldBack: problem}
}

// Explain returns the answer for the error of a request, and whether the server caused it.
func Explain(r *http.Request, err error) (answer web.Described, serverFault bool) {
	if p := asProblem(err); p != nil {
		return p, false
	}
	return serverFailed(err, r.Method == http.MethodGet || r.Method == http.MethodHead), true
}

// noSpaceError names the document for which the disk has no space.
type noSpaceError struct {
	error
	what, instead string
}

func (e *noSpaceError) Unwrap() error { return e.error }

// NoSpaceFor adds to an error of a full disk what could not be made, and a sentence about what can be read instead.
func NoSpaceFor(what, instead string, err error) error {
	if !durable.IsDiskFull(err) {
		return err
	}
	return &noSpaceError{err, what, instead}
}

// MaxDeleteHeader is the header with the number of topics that a new version may lose: see [losses.Limit].
const MaxDeleteHeader = "TMShare-Max-Delete"

// asProblem maps errors to statuses. It returns nil for errors about this server rather than the request.
func asProblem(err error) web.Described {
	var (
		known    *web.Problem
		syntax   *xtm.SyntaxError
		inUse    *fragment.InUseError
		refused  *fragment.DocumentError
		loses    *losses.TooManyError
		unread   *formats.InputError
		unfit    *publish.DocumentError
		tooBig   *http.MaxBytesError
		readOnly *store.ReadOnlyError
		refuses  interface{ HTTPStatus() int }
		missing  = errors.Is(err, store.ErrNotFound)
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &readOnly):
		p := web.Problemf(http.StatusConflict, "%s", readOnly)
		p.Origin = readOnly.Origin
		return p
	case errors.As(err, &tooBig):
		return web.Problemf(http.StatusRequestEntityTooLarge, "the body is larger than the limit of %d bytes", tooBig.Limit)
	case errors.As(err, &refuses):
		p := web.Problemf(refuses.HTTPStatus(), "%s", refuses)
		if p.Status == http.StatusServiceUnavailable {
			p.RetryAfter = 5 * time.Second
		}
		return p
	case errors.As(err, &unread):
		return web.Problemf(http.StatusBadRequest, "%s", unread)
	case errors.As(err, &syntax):
		return web.Problemf(http.StatusUnprocessableEntity, "%s", err)
	case errors.As(err, &refused):
		return web.Problemf(http.StatusUnprocessableEntity, "%s", refused.Reason)
	case errors.As(err, &inUse):
		p := web.Problemf(http.StatusConflict, "the topic %s still types, scopes or reifies something", inUse.Topic)
		p.Lines = inUse.Users
		return &Problem{Problem: *p, Users: inUse.Users}
	case errors.As(err, &loses):
		return heldBack(loses)
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrNameTaken):
		return web.Problemf(http.StatusConflict, "%s", err)
	case missing:
		return web.Problemf(http.StatusNotFound, "%s", err)
	case errors.Is(err, store.ErrRecordTooLarge):
		return web.Problemf(http.StatusRequestEntityTooLarge,
			"a topic or an association cannot be stored: %s; say less of it, or divide it among several", err)
	case errors.Is(err, store.ErrTooLarge):
		return web.Problemf(http.StatusRequestEntityTooLarge,
			"%s; publish it in parts, or raise the limit of the server (--max-body)", err)
	case errors.Is(err, store.ErrGone):
		return web.Problemf(http.StatusGone, "%s", err)
	case errors.As(err, &unfit):
		return web.Problemf(http.StatusUnprocessableEntity, "%s", unfit)
	}
	return nil
}

// serverFailed returns the answer for an error of the server. A request that only reads has changed nothing in any
// case.
func serverFailed(err error, reading bool) *web.Problem {
	unchanged := ": nothing was changed"
	if reading {
		unchanged = ""
	}
	if durable.IsDiskFull(err) {
		if reading {
			return noSpace(err)
		}
		return web.Problemf(http.StatusInsufficientStorage,
			"the disk of the store is full, or nearly so: nothing was changed. Reading goes on. Free some space on the disk "+
				"of the data folder, or of the database, then send the request again")
	}
	if errors.Is(err, store.ErrUnavailable) {
		p := web.Problemf(http.StatusServiceUnavailable,
			"the database of the server does not answer, or takes no changes. Nothing is lost: try again")
		p.RetryAfter = 5 * time.Second
		return p
	}
	if errors.Is(err, store.ErrReadOnly) {
		p := web.Problemf(http.StatusServiceUnavailable,
			"this server only reads its database%s. What another server of the database has not made yet cannot be made "+
				"here. Ask that one, or try again later", unchanged)
		p.RetryAfter = time.Minute
		return p
	}
	if errors.Is(err, store.ErrMoved) {
		return web.Problemf(http.StatusServiceUnavailable,
			"the store of the server was moved%s. Start the server on the new one, which its log names", unchanged)
	}
	if why := Impaired(err); why != "" {
		return web.Problemf(http.StatusServiceUnavailable, "%s", why)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return web.Problemf(http.StatusInternalServerError,
			"the server may not write or read a file that it needs. Its data folder may be read-only, or belong to another "+
				"user; its log names the file")
	}
	return web.Problemf(http.StatusInternalServerError, "the server failed; its log says why")
}

// noSpace returns the answer if the disk has no space for the document.
func noSpace(err error) *web.Problem {
	missing := &noSpaceError{what: "what was asked for", instead: "What is stored can be read"}
	errors.As(err, &missing)
	return web.Problemf(http.StatusInsufficientStorage,
		"the disk of the server is full, or nearly so: it has no space to make %s. %s. Free some space on the disk that "+
			"has the data folder, then ask again", missing.what, missing.instead)
}

// Impaired returns the reason why a server accepts no changes any more; "" if an error has another cause.
func Impaired(err error) string {
	switch {
	case errors.Is(err, store.ErrElsewhere):
		return "the data folder of the server was moved, removed or replaced while it ran: nothing is changed any more. " +
			"Stop the server, and start it on the right folder; its log has the path"
	case errors.Is(err, store.ErrMoved):
		return "the store was moved; the log says where to: start the server there"
	case errors.Is(err, store.ErrKnownDamage):
		return "damage was found in the data folder of the server: nothing is changed any more, and what is whole can be " +
			"read. Restore the folder from a backup; the log names the file"
	}
	return ""
}
