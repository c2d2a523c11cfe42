package web

import (
	"runtime/debug"
	"strconv"
	"time"
)

// Build returns what stands for this program: another one may make another answer of the same state. Where nothing is
// known of it, as it was built from edited sources, it is of the time now.
func Build(now time.Time) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, set := range info.Settings {
			settings[set.Key] = set.Value
		}
		if settings["vcs.revision"] != "" && settings["vcs.modified"] == "false" {
			return settings["vcs.revision"]
		}
	}
	return strconv.FormatInt(now.UnixNano(), 36)
}
