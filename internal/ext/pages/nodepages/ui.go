package nodepages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

// UI answers requests for the pages of a data folder.
type UI struct {
	guard *guard
	site  *Site
	root  string
	serve http.Handler
}

// New returns the pages of the data folder that commands work on, to be served at a loopback address.
func New(run Run, address net.Addr, log *slog.Logger) (*UI, error) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is no loopback address: others could reach it. Give one as 127.0.0.1:0", address)
	}
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil, err
	}
	u := &UI{guard: newGuard(port), root: "http://" + address.String()}
	u.site = &Site{Token: func(*http.Request) string { return u.guard.form }, Logger: log, Now: time.Now}
	topics := NewTopics(run, u.site)
	u.site.Source, u.site.Actions = &topics.folder, &topics.folder
	routes := http.NewServeMux()
	u.site.Add(routes)
	topics.Add(routes)
	routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, NodePath, http.StatusSeeOther)
	})
	u.serve = routes
	return u, nil
}

// Address returns the address that opens the pages. It is a secret, because it allows everything that the pages allow.
func (u *UI) Address() string { return u.guard.address(u.root) }

// AddressOnce returns one that opens the pages once, soon.
func (u *UI) AddressOnce() string { return u.guard.addressOnce(u.root) }

// maxForm bounds the length in bytes of a form.
const maxForm = 1 << 20

// ServeHTTP implements [http.Handler].
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == openPath && r.Method == http.MethodGet:
		u.site.Shown(u.guard.open)(w, r)
		return
	case r.URL.Path == StylePath() && u.guard.named(r.Host): // error pages need it, too
		u.serve.ServeHTTP(w, r)
		return
	}
	err := u.guard.check(r)
	if err == nil && r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err = r.ParseForm(); err == nil {
			err = u.guard.checkForm(r.PostForm)
		} else if large := new(http.MaxBytesError); errors.As(err, &large) {
			err = &Problem{Status: http.StatusRequestEntityTooLarge, Text: texts.FormTooLarge}
		} else {
			err = &Problem{Status: http.StatusBadRequest, Text: texts.FormUnread}
		}
	}
	if err != nil {
		u.site.ShowProblem(w, r, err)
		return
	}
	u.serve.ServeHTTP(w, r)
}

// Serve serves the pages until ctx ends.
func (u *UI) Serve(ctx context.Context, listener net.Listener) error {
	s := &http.Server{
		Handler: u, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(u.site.Logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context {
			return ctx
		},
	}
	defer context.AfterFunc(ctx, func() {
		soon, end := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer end()
		if s.Shutdown(soon) != nil {
			s.Close()
		}
	})()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
