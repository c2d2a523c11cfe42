package client

import (
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/internal/cli"
)

// UnknownError is the error for a name without a subscription.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	what := fmt.Sprintf("there is no subscription %q", e.Name)
	if strings.Contains(e.Name, "://") {
		what = e.Name + " is an address: name a subscription"
	}
	if len(e.Known) == 0 {
		return what + "; there are none: subscribe to a URL first"
	}
	return what + "; there are: " + strings.Join(e.Known, ", ")
}

// Outcome returns the exit code of a command that names the subscription.
func (e *UnknownError) Outcome() int {
	if validName(e.Name) {
		return cli.Failed
	}
	return cli.Usage
}

// PrefixError is the error for a feed whose source locator prefix differs from the pinned one. Nothing was changed,
// because following it could delete everything.
type PrefixError struct {
	URL           string
	Pinned, Found string
	Name, Again   string // the subscription, and the arguments that subscribe to it again
}

func (e *PrefixError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("%s: the feed has no ServerSrcLocatorPrefix any more (it was %s); nothing was changed",
			e.URL, e.Pinned)
	}
	again := ""
	if e.Name != "" {
		again = fmt.Sprintf(": \"tmshare-client unsubscribe %s\", then \"tmshare-client subscribe --as %s %s\"", e.Name,
			e.Name, e.Again)
	}
	return fmt.Sprintf(
		"%s: the feed's ServerSrcLocatorPrefix is %s, it was %s; nothing was changed. The map was made anew under this "+
			"address, or another server answers. If the server's owner confirms the new prefix, subscribe anew%s", e.URL,
		e.Found, e.Pinned, again)
}

// SharedPrefixError is the error for a source with the source locator prefix of another one, on another server.
// Identifiers under the prefix would name the topics of both.
type SharedPrefixError struct {
	SP, URL         string
	Other, OtherURL string // the subscription that has the prefix
}

func (e *SharedPrefixError) Error() string {
	return fmt.Sprintf(
		"%s has the ServerSrcLocatorPrefix %s, and so has the subscription %q, which follows another server (%s): their "+
			"topics would be taken for each other. Ask the owner of one server for another prefix; if both publish one "+
			"collection, give --allow-shared-prefix", e.URL, e.SP, e.Other, e.OtherURL)
}
