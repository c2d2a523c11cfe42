package folder

import (
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/follow"
)

// fixity returns the known digest and length of the file.
func (h *Held) fixity() follow.Fixity {
	f := follow.FixityOf(h.Stated...)
	if h.File != "" {
		f.Length, f.Empty = h.Length, h.Length == 0
		f.Hashes = append(f.Hashes, resourcesync.Hash{Algorithm: resourcesync.SHA256, Digest: h.SHA256})
	}
	return f
}

// Compare implements [follow.Comparer]. A resource whose fetch failed is compared with the failed version.
func (f *Folder) Compare(id string, stated follow.Fixity) follow.Match {
	held := f.state.Records[id]
	if held == nil {
		return follow.Unknown
	}
	if m := held.Missing; m != nil && len(m.Representations) > 0 {
		before := m.Representations[len(m.Representations)-1].Fixity
		if follow.Compare(before, stated) == follow.Different || before.IsZero() != stated.IsZero() {
			return follow.Different
		}
	}
	if held.File == "" {
		return follow.Unknown
	}
	return follow.Compare(held.fixity(), stated)
}
