package doctor

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/tokenfile"
)

// published looks at the collections of a node.
func (r *Report) published(n *Node, node *status.Node) {
	for _, c := range node.Publishes {
		where := "collection " + c.Name
		for _, former := range c.Former {
			r.fact("former name", "%s moved to %s", former, c.Name)
		}
		if c.Advice != "" {
			r.found(where, "an input is missing: nothing more is derived", c.Advice)
		}
		if c.BeingFilled {
			r.found(where, "it is being filled, and nobody is served before it is whole",
				"wait; "+quotedCommand(n.client("status --node"))+" shows how far it is")
		}
	}
}

const moves = `if its owner says that it has moved: "`

// followed looks at the subscriptions of a node, and returns the files with the tokens for reading, by the names of the
// subscriptions.
func (r *Report) followed(n *Node, node *status.Node) map[string]string {
	for i := range node.Follows {
		st := &node.Follows[i]
		where := "subscription " + st.Name
		found := func(what, remedy string) { r.found(where, what, remedy) }
		switch {
		case st.Missing != "":
			found("it "+st.Missing, "follow it with a program that has it, or "+quotedCommand(n.client("unsubscribe "+st.Name)))
		case st.Refused:
			found("its signed log does not go on from what was accepted of it: the source shows different histories, or "+
				"has a new key", "ask its owner by another way, then "+quotedCommand(n.client("trust "+st.Name)))
		case st.State == status.NotLoaded || st.State == status.BeingLoaded:
			found("it is "+string(st.State), quotedCommand(n.client("sync "+st.Name)))
		case st.Doubt != nil:
			found("it is "+st.Doubt.String(), st.Doubt.Advice(func(flag string) string {
				return quotedCommand(n.client("sync " + st.Name + " " + flag))
			}))
		case st.Moves != "":
			found("its last round failed: "+st.LastError, moves+strings.Trim(st.Moves, `"`)+" --data "+quoted(n.Data)+`"`)
		case st.State == status.RoundFailed:
			found("its last round failed: "+st.LastError, quotedCommand(n.client("sync "+st.Name))+" tries again")
		}
		if st.Lag != nil && time.Duration(*st.Lag*float64(time.Second)) > n.MaxLag && st.State != status.RoundFailed {
			found(fmt.Sprintf("the copy may be %s old", time.Duration(*st.Lag*float64(time.Second)).Round(time.Minute)),
				n.keepUp(st.Name))
		}
		if st.Quarantined > 0 {
			found(fmt.Sprintf("topics in quarantine: %d; their last change could not be applied", st.Quarantined),
				quotedCommand(n.client("retry "+st.Name))+" tries again, "+quotedCommand(n.client("status -v "+st.Name))+
					" has the reasons")
		}
		if st.Unproven != "" {
			remedy := "verify "
			if st.Differs {
				remedy = "replace "
			}
			found("it is not proven equal to its source: "+st.Unproven, quotedCommand(n.client(remedy+st.Name)))
		}
		if st.Ahead > 0 {
			found("its last change is later than now: changes that the server dates before that are not noticed",
				"tell its owner; when its clock is right, "+quotedCommand(n.client("replace "+st.Name)))
		}
	}
	return r.tokens(n, node.Follows)
}

// keepUp returns the command that keeps a subscription up to date.
func (n *Node) keepUp(name string) string {
	if n.Serving != nil {
		return "let the server do rounds (--interval); " + quotedCommand(n.client("sync "+name)) + " does one now"
	}
	return quotedCommand(n.client("watch")) + " keeps it up to date, as the service tmshare-client does; " +
		quotedCommand(n.client("sync "+name)) + " does one round"
}

// tokens looks at the files with tokens for reading, and returns them by the names of the subscriptions.
func (r *Report) tokens(n *Node, list []status.Status) map[string]string {
	files := map[string]string{}
	for i := range list {
		s := &list[i]
		if s.Asked == nil || s.TokenFile == "" {
			continue
		}
		where := "subscription " + s.Name
		files[s.Name] = s.TokenFile
		r.secret(where, s.TokenFile)
		if u, err := url.Parse(s.Feed); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
			r.found(where, "its token goes to "+u.Host+" over plain HTTP: anybody on the way can read it",
				"subscribe again by https: "+quotedCommand(n.client("unsubscribe "+s.Name))+", then "+
					quotedCommand(n.client("subscribe "+strings.Replace(s.Feed, "http:", "https:", 1)+" --token-file "+
						quoted(s.TokenFile))))
		}
	}
	return files
}

// secret looks at a file with tokens, and returns them.
func (r *Report) secret(where, file string) []tokenfile.Token {
	info, err := os.Stat(file)
	if err != nil {
		r.found(where, "the file with its token cannot be read: "+err.Error(), "put the token into "+file)
		return nil
	}
	if info.Mode().Perm()&0o077 != 0 && !onWindows {
		r.found(where, fmt.Sprintf("others can read the token in %s (%s)", file, info.Mode()),
			quotedCommand("chmod go= "+quoted(file)))
	}
	all, err := tokenfile.Read(file)
	if err != nil {
		r.found(where, err.Error(), "let the user of the program read it, with a token as plain text in UTF-8; "+
			quotedCommand("(umask 077; openssl rand -hex 24 >"+quoted(file)+")")+" makes one")
	}
	return all
}
