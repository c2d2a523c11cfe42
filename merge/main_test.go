package merge_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes do with fewer random histories in the short form.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "histories" })
	if testing.Short() && !given {
		*histories /= 3
	}
	os.Exit(m.Run())
}
