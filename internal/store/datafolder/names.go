package datafolder

import "github.com/tmshare/tmshare/xtm"

// SnapshotExt returns what the names of the files of snapshots end in.
func SnapshotExt(version xtm.Version) string {
	if version == xtm.V10 {
		return ".xtm1" + SnapshotEnding
	}
	return ".xtm21" + SnapshotEnding
}
