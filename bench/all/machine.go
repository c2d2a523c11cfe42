package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// quietLoad is the load average above which other work disturbs the measurements.
const quietLoad = 0.5

// machine describes the machine, and its load in the last minute.
func machine(ctx context.Context) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %d processors, %s/%s, %s", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version())
	for _, version := range [][]string{{"java", "-version"}, {"xmllint", "--version"}, {"nginx", "-v"}} {
		out, err := exec.CommandContext(ctx, version[0], version[1:]...).CombinedOutput()
		if line, _, _ := strings.Cut(string(out), "\n"); err == nil {
			fmt.Fprintf(&s, ", %s", strings.TrimSpace(line))
		}
	}
	load, err := loadAverage()
	switch {
	case err != nil:
		s.WriteString(".\n\nThe load average before the run is not known.\n")
	case load > quietLoad:
		fmt.Fprintf(&s, ".\n\nNOT QUIET: load average before the run %.2f.\n", load)
	default:
		fmt.Fprintf(&s, ".\n\nLoad average before the run: %.2f.\n", load)
	}
	return s.String()
}

// processor returns the name of the processor, if Linux reports it.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, name, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(name)
		}
	}
	return "unknown processor"
}

// loadAverage returns that of the last minute.
func loadAverage() (load float64, err error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	return load, err
}
