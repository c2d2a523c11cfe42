package client_test

import (
	"strings"

	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/internal/testkit/node"
)

// The real server for clients in these tests, its faults, and the kinds of requests.
type (
	origin = node.Origin
	fault  = faults.Fault
)

var (
	newOrigin, publishing, documentSize, silent              = node.New, node.Publishing, node.DocumentSize, node.Silent
	damage, rewriting, answering, record                     = faults.Some, faults.Rewriting, faults.Answering, faults.Record
	isRecent, isArchive, isSnapshots, isSnapshot, isFragment = node.IsRecent, node.IsArchive, node.IsSnapshots, node.IsSnapshot, node.IsFragment
	isRecord, isRecordsFeed                                  = node.IsRecord, node.IsRecordsFeed
	passing                                                  = faults.Passing()
)

const always = faults.Always

// times counts the strings that contain a part.
func times(all []string, part string) int {
	n := 0
	for _, s := range all {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

// fragments counts the fragments among the paths of seen.
func fragments(all []string) int { return times(all, ".xtm21") - times(all, "/snapshots/") }
