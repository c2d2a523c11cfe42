package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/fetch"
)

const onWindows = runtime.GOOS == "windows"

// clocksDiffer is the tolerated difference between the clocks of two computers.
const clocksDiffer = 5 * time.Minute

// answersWithin is the time limit for an answer of a server.
const answersWithin = 10 * time.Second

// atOnce is the number of concurrent requests.
const atOnce = 8

// asked is a document that should exist.
type asked struct {
	where, url, tokenFile string
	unreachable           string // the remedy if it does not
	name                  string // of the subscription; "": not of one
}

// reach sends requests to the servers that the node follows, and to the node at its public address.
func (r *Report) reach(ctx context.Context, n *Node, node *status.Node, tokens map[string]string) {
	var list []asked
	for i := range node.Follows {
		st := &node.Follows[i]
		host := st.Feed
		if u, err := url.Parse(st.Feed); err == nil {
			host = u.Host
		}
		list = append(list,
			asked{"subscription " + st.Name, st.Feed, tokens[st.Name], "tell the owner of " + host +
				", unless the network is at fault: " + quotedCommand("curl -I "+quoted(st.Feed)) + " shows more", st.Name})
	}
	if s := n.Serving; s != nil && address(s) != "" {
		list = append(list,
			asked{"server", address(s) + "/healthz", "",
				"set --base-url to the address that others use, and look at the proxy in front; " +
					quotedCommand("curl -i "+quoted(address(s)+"/healthz")) + " shows more", ""})
	}
	found := make([][]Finding, len(list))
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range list {
		all.Go(func() {
			turns <- struct{}{}
			found[i] = n.ask(ctx, &list[i])
			<-turns
		})
	}
	all.Wait()
	for _, findings := range found {
		r.Findings = append(r.Findings, findings...)
	}
}

// ask fetches a document, and compares the clocks.
func (n *Node) ask(ctx context.Context, a *asked) (found []Finding) {
	h := n.HTTP
	if h == nil {
		h = &http.Client{}
	}
	h, err := fetch.BearerFrom(h, a.url, a.tokenFile)
	if err != nil {
		return nil // secret reports it
	}
	fetcher := fetch.Fetcher{HTTP: h, Tries: 1, Stall: answersWithin, Logger: slog.New(slog.DiscardHandler)}.WithDefaults()
	fetcher, err = fetcher.From(a.url)
	if err != nil {
		return []Finding{{a.where, err.Error(), a.unreachable}}
	}
	to := ""
	fetcher.Moved = func(_, at string) { to = at }
	begun := n.Now()
	_, answer, err := fetch.Do(ctx, fetcher, fetch.Request{Method: http.MethodHead, URL: a.url, Max: 1,
		Within: answersWithin, Packed: true}, func(*fetch.Answer) (struct{}, error) {
		return struct{}{}, nil
	})
	var refused *fetch.Error
	switch {
	case errors.As(err, &refused) &&
		(refused.Status == http.StatusMethodNotAllowed || refused.Status == http.StatusNotImplemented):
		return nil // it is there
	case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		return []Finding{{a.where, err.Error(),
			"ask the owner of the server for a token that may read, and subscribe with --token-file"}}
	case err != nil && to != "" && a.name != "":
		return []Finding{{a.where, "it cannot be reached: " + err.Error(),
			moves + n.client("source set-url "+a.name+" "+quoted(to)) + `"`}}
	case err != nil:
		return []Finding{{a.where, "it cannot be reached: " + err.Error(), a.unreachable}}
	}
	at, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return nil
	}
	ended := n.Now()
	if off := max(begun.Sub(at), at.Sub(ended)); off > clocksDiffer {
		return []Finding{{a.where,
			fmt.Sprintf("the clock of its server and the one here differ by %s", off.Round(time.Second)),
			"set this clock: \"timedatectl set-ntp true\"; if it is right, tell the owner of the server"}}
	}
	return nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
