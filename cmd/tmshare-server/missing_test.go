package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/testenv"
)

// without returns all extensions except those in $WITHOUT, or none if that is "all".
func without() []extension.Extension {
	return slices.DeleteFunc(ext.All(), func(e extension.Extension) bool { return missing(os.Getenv("WITHOUT"), e.Name) })
}

func missing(which, name string) bool {
	return which == "all" || slices.Contains(strings.Split(which, "+"), name)
}

// absences returns the missing extensions of each run. In the short form, extensions that no other needs, and that
// write no data into a folder, are missing together.
func absences() []string {
	names := []string{"all"}
	var independent []string
	for _, e := range ext.All() {
		switch e.Name {
		case "backup", "changes", "demo", "doctor", "files", "folder", "key", "manual", "postgres", "since", "websub":
			independent = append(independent, e.Name)
		default:
			names = append(names, e.Name)
		}
	}
	if testenv.Long() {
		return append(names, independent...)
	}
	return append(names, strings.Join(independent, "+"))
}

// Both programs work without any one extension, and without all, on folders that they have written with all. Missing
// ones are reported, and no data is lost.
func TestProgramsWithoutAnExtension(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "the programs run without each extension")
	for _, name := range absences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := scripts("testdata/missing", map[string]string{"MISSING": name, "KEY": fragment.Key("http://psi.example.org/c")})
			p.Condition = func(what string) (bool, error) { return missing(name, what), nil } // [backup]: it is missing
			testscript.Run(t, p)
		})
	}
}
