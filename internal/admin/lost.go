package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/tmshare/tmshare/internal/cli"
)

// unanswered returns the error for a request without a complete answer, with the outcome and the remedy.
func (c *Client) unanswered(r *request, err error) error {
	return &cli.ExitError{Code: cli.Unreachable, Err: c.lost(r, err)}
}

func (c *Client) lost(r *request, err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("no answer from %s: %w; check that the server runs, and its address (--server)", c.addr, err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("no answer from %s: %w; begin the address with http:// (--server)", c.addr, err)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("no answer from %s: %w; check the address, and the clock of this machine. If the authority of the "+
			"certificate is your own, name its file: --ca-cert FILE", c.addr, err)
	case r.method == http.MethodGet || r.DryRun:
		return fmt.Errorf("%s has not answered to the end: %w; check that the server still runs, then try again", c.addr, err)
	}
	return fmt.Errorf("%s has not answered to the end: %w. It did all of what was asked, or nothing: %s shows which. "+
		"If it was nothing, check that the server runs, and try again", c.addr, err, r.shownBy())
}

// read reads the body of an answer by into. Its error distinguishes a failed connection from an answer of another
// program.
func (c *Client) read(r *request, res *http.Response, into func(io.Reader) error) error {
	body := &noticed{Reader: res.Body}
	err := into(body)
	switch {
	case err == nil:
		return nil
	case body.err != nil:
		return c.unanswered(r, body.err)
	}
	return fmt.Errorf("%s answers what is not this server's: %w; check the address (--server)", c.addr+r.path, err)
}

// noticed remembers why its reader has failed.
type noticed struct {
	io.Reader
	err error
}

func (n *noticed) Read(p []byte) (int, error) {
	k, err := n.Reader.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return k, err
}

// shownBy names the command that shows whether a request to change something was done.
func (r *request) shownBy() string {
	name, below, _ := strings.Cut(strings.TrimPrefix(r.path, "/topicmaps/"), "/")
	if unescaped, err := url.PathUnescape(name); err == nil {
		name = unescaped
	}
	switch {
	case r.method == http.MethodDelete && below == "":
		return `"tmshare-server collections"`
	case r.method == http.MethodPut && r.body != nil && r.body.mediaType == settingsType:
		return fmt.Sprintf(`"tmshare-server collections show %s"`, name)
	case strings.HasPrefix(below, "move"):
		return `"tmshare-server collections move", run again,`
	case below == "snapshots", below == "gc":
		return "the log of the server"
	}
	return fmt.Sprintf(`"tmshare-server log %s"`, name)
}
