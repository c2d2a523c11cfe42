package web

import (
	"runtime/debug"
	"strconv"
	"time"
)

// Build returns an identifier of this program, because another version may give another answer for the same state. For
// a build from edited sources it is made of the time now.
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
