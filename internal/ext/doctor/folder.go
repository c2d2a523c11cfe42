package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// littleSpace is the number of free bytes that a node should have; loading a large map takes as much.
const littleSpace = 1 << 30

const inFolder = "data folder"

// folder checks the data folder, and returns the status of the node; nil if it cannot be read.
func (r *Report) folder(ctx context.Context, n *Node) *status.Node {
	r.fact(inFolder, "%s", n.Data)
	if _, err := os.Stat(n.Data); errors.Is(err, fs.ErrNotExist) {
		r.found(inFolder, "there is none at "+n.Data, n.begin())
		return nil
	}
	r.permissions(n)
	r.space(n)
	holder, err := control.Holder(n.Data)
	switch {
	case err == nil:
		r.fact("in use by", "%s", holder)
	case !errors.Is(err, control.ErrNobody):
		r.found(inFolder, err.Error(), "run this command as the user of that process, or restart it")
		return nil
	default:
		if !r.closed(n) {
			return nil
		}
	}
	out := n.Run(ctx, "status", "--node", "--json")
	if strings.HasPrefix(out.Err, "note: ") || strings.Contains(out.Err, "of another version") {
		r.found(inFolder, strings.TrimSpace(out.Err),
			"restart that process: \"systemctl restart tmshare-client\", or tmshare-server")
	}
	var node status.Node
	if err := json.Unmarshal([]byte(out.Out), &node); err != nil {
		r.found(inFolder, strings.TrimSpace(out.Err), quotedCommand(n.own("check")))
		return nil
	}
	if strings.Contains(out.Err, store.ErrDamaged.Error()) {
		r.found(inFolder, strings.TrimSpace(out.Err), quotedCommand(n.own("check"))+" says more")
	}
	r.fact("publishes", "%d collections", len(node.Publishes))
	r.fact("follows", "%d subscriptions", len(node.Follows))
	for _, d := range node.Dependents {
		if d.Wrong != "" {
			r.found(d.Name, d.Wrong, cmp.Or(d.Advice, quotedCommand(n.own(d.Mends))))
		}
	}
	r.fact("on disk", "%d MB of records, %d MB of snapshots", node.Size.Records>>20, node.Size.Snapshots>>20)
	n.take(r, node.Serving)
	if n.Serving != nil && !strings.Contains(holder, "serve") {
		r.found("server", "it does not run: nobody serves the data folder", "\"systemctl start tmshare-server\", or "+
			quotedCommand(n.own("serve")))
	}
	return &node
}

// take takes the settings of the server that runs, where none are given here.
func (n *Node) take(r *Report, settings map[string][]string) {
	if n.Serving == nil || n.Flags == nil {
		return
	}
	if settings == nil {
		r.fact("settings", "those given here: the server cannot be asked for its own (--config names a file with them)")
		return
	}
	r.fact("settings", "those of the server that runs, but for those given here")
	for name, values := range settings {
		if f := n.Flags.Lookup(name); f != nil && !f.Changed { // nil: of a server of another version
			for _, value := range values {
				_ = f.Value.Set(value) // the server has taken it
			}
		}
	}
}

func quotedCommand(c string) string { return `"` + c + `"` }

// begin returns the advice to make a data folder.
func (n *Node) begin() string {
	if n.Serving != nil {
		return quotedCommand(n.own("serve --map NAME=FILE"))
	}
	return quotedCommand(n.client("subscribe URL")) + ", or name the right folder with --data"
}

// permissions checks whether other users can read or change the files.
func (r *Report) permissions(n *Node) {
	for _, name := range []string{".", datafolder.Database, datafolder.Snapshots} {
		path, others := filepath.Join(n.Data, name), fs.FileMode(0o077)
		if name == "." { // it may be seen: what is in it is closed to others
			others = 0o022
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&others != 0 && badger.CanShare {
			r.found(inFolder, fmt.Sprintf("others can read or change what is in %s (%s)", path, info.Mode()),
				quotedCommand("chmod -R go= "+quoted(n.Data)))
			return
		}
	}
}

func (r *Report) space(n *Node) {
	free, err := datafolder.FreeBytes(n.Data)
	if err != nil {
		return
	}
	r.fact("free", "%d MB", free>>20)
	if free < littleSpace {
		r.found(inFolder, fmt.Sprintf("%d MB are free on its disk; nothing is written below %d MB", free>>20,
			datafolder.MinFree>>20),
			"free some space: "+quotedCommand("du -sh "+quoted(n.Data)+"/*")+
				" shows what takes it; --keep-for and --keep-entries of \"tmshare-server serve\" give up old changes")
	}
}

// closed looks at a data folder that no process holds, and reports whether commands that read leave it as it is.
func (r *Report) closed(n *Node) bool {
	f, err := datafolder.Lock(datafolder.Options{
		Dir: n.Data, Access: datafolder.Read, Shared: true, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Accept: func(*datafolder.Folder, kv.Reader) error { return nil },
	})
	switch {
	case errors.Is(err, datafolder.ErrNoFolder):
		r.found(inFolder, err.Error(), n.begin())
		return false
	case errors.Is(err, store.ErrLocked):
		r.found(inFolder, "another process has locked it and takes no commands", "wait for it, or end it: "+
			quotedCommand("fuser -v "+quoted(filepath.Join(n.Data, datafolder.Database))+"/*")+" shows it")
		return false
	case err != nil:
		r.found(inFolder, err.Error(), "do what the message says")
		return false
	}
	defer f.Unlock()
	if !f.CanBeRead() {
		r.found(inFolder, "the last process did not close it", quotedCommand(n.own("check"))+
			" opens it, finishes what was interrupted, and looks at all of it")
		return false
	}
	r.fact("format", "%d", keys.FormatVersion)
	return true
}

// check looks at all rows.
func (r *Report) check(ctx context.Context, n *Node) {
	out := n.Run(ctx, "check", "--json")
	var checked struct{ Findings []store.Finding }
	if err := json.Unmarshal([]byte(out.Out), &checked); err != nil {
		r.found(inFolder, strings.TrimSpace(out.Err), quotedCommand(n.own("check")))
	}
	for _, f := range checked.Findings {
		remedy := f.Remedy
		if f.Repairable {
			remedy = quotedCommand(n.own("check --repair"))
		}
		r.found(f.Where, f.What, remedy)
	}
}
