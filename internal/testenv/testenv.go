// Package testenv finds what tests need and a clone of the project may lack.
package testenv

import (
	"cmp"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Shared returns the path of a file or folder below "shared", which stands
// beside a checkout: real maps, conformance cases, schemas. If it is missing, the test is skipped and logs the
// checks that it left out.
func Shared(t testing.TB, path string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		found := filepath.Join(dir, "shared", path)
		if _, err := os.Stat(found); err == nil {
			return found
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skipf("NOT CHECKED: there is no shared/%s in any folder above: CONTRIBUTING.md says what belongs there", path)
		}
		dir = parent
	}
}

// SharedFile returns what a file below "shared" contains, as Shared finds it. One whose name ends in .gz is unpacked.
func SharedFile(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(Shared(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return content
}

// packages are the packages of Debian with programs that have another name.
var packages = map[string]string{"xmllint": "libxml2-utils", "promtool": "prometheus", "systemd-analyze": "systemd",
	"dpkg-deb": "dpkg", "unshare": "util-linux", "virtuoso-t": "virtuoso-opensource", "node": "nodejs",
	"nginx": "nginx-light", "groonga": "groonga-bin", "java": "default-jre-headless", "javac": "default-jdk-headless",
	"etcd": "etcd-server", "psql": "postgresql-client"}

// Command returns the path of a program. If it is missing, the test is skipped and logs the checks that it left
// out.
func Command(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil { // servers are in a folder that is in the path of few
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		t.Skipf("NOT CHECKED: %s is not installed (Debian: %s)", name, cmp.Or(packages[name], name))
	}
	return path
}

// SkipUnderRace skips a long test under the race detector. It is for tests that do one thing at a
// time: the detector can find nothing there, and takes ten times the time.
func SkipUnderRace(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("does one thing at a time: the race detector can find nothing")
	}
}
