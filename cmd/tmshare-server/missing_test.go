package main

import (
	"os"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/testenv"
)

// without returns the extensions but the one that $WITHOUT names, or none where that is "all".
func without() []extension.Extension {
	return slices.DeleteFunc(ext.All(), func(e extension.Extension) bool { return missing(os.Getenv("WITHOUT"), e.Name) })
}

func missing(which, name string) bool { return which == "all" || which == name }

// Both programs work without any one extension, and without all, on folders that they have written with all. What is
// missing is said, and nothing is lost.
func TestProgramsWithoutAnExtension(t *testing.T) {
	testenv.SkipUnderRace(t)
	names := []string{"all"}
	for _, e := range ext.All() {
		names = append(names, e.Name)
	}
	for _, name := range names[:testenv.Usual(1, len(names))] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := scripts("testdata/missing", map[string]string{"MISSING": name, "KEY": fragment.Key("http://psi.example.org/c")})
			p.Condition = func(what string) (bool, error) { return missing(name, what), nil } // [backup]: it is missing
			testscript.Run(t, p)
		})
	}
}
