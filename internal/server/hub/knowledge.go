package hub

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/store"
)

// knowledge is what hubs know: by hub and collection, the last change that the hub was told of.
type knowledge map[string]map[string]position

// position is an entry of the log of a collection; Seq is 0 before the first.
type position struct {
	Epoch uuid.UUID
	Seq   uint64
}

// readKnowledge reads what hubs know from a file, which may be missing.
func readKnowledge(path string, hubs []string) (knowledge, error) {
	known := knowledge{}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &known)
	}
	if err != nil {
		return knowledge{}, err
	}
	maps.DeleteFunc(known, func(hub string, _ map[string]position) bool { return !slices.Contains(hubs, hub) })
	return known, nil
}

// begin brings what a hub knows in step with the collections that there are. A hub that was never told of anything begins with the
// changes from now on: Destinations have what was before from the lists of resources. A collection that is new to a hub which was
// told of others begins with its first change, and so does another history of a collection. It forgets those that are gone.
func (n *Notifier) begin(hub string, all []*store.Collection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, told := n.known[hub]
	next := map[string]position{}
	for _, c := range all {
		now := position{c.Epoch, 0}
		if p := old[c.Name]; !told {
			now.Seq = c.Head
		} else if p.Epoch == c.Epoch {
			now.Seq = min(p.Seq, c.Head) // an older copy may have been put back
		}
		next[c.Name] = now
	}
	if !told || !maps.Equal(old, next) {
		n.set(hub, next)
	}
}

// position returns the last change of a collection that a hub was told of.
func (n *Notifier) position(hub, collection string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[hub][collection].Seq
}

// note notes the last change of a collection that a hub was told of.
func (n *Notifier) note(hub, collection string, now position) {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := maps.Clone(n.known[hub])
	next[collection] = now
	n.set(hub, next)
}

// set replaces what a hub knows. Where the file cannot be written, the hub is told of some changes again after the next start.
func (n *Notifier) set(hub string, all map[string]position) {
	n.known[hub] = all
	var err error
	if n.MayWrite != nil {
		err = n.MayWrite()
	}
	if err == nil {
		err = durable.WriteJSON(n.File, n.known)
	}
	if err != nil {
		n.Logger.Error("what hubs know of changes cannot be kept: they are told again after the next start. Check the free space and the rights of the folder", "file", n.File, "error", err)
	}
}
