package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

var here = target{runtime.GOOS, runtime.GOARCH}

// scratch is for what several tests use.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "packages"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// built returns a folder with the programs of this machine, linked without other libraries from what "go build" has
// compiled already. A release compiles all once more, without paths of the machine, which takes a minute: the long form
// does that.
var built = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(scratch, "programs")
	c := exec.Command("go", "build", "-ldflags", "-s -w -linkmode=external -extldflags=-static", "-o", dir+"/", "./cmd/...")
	c.Dir = filepath.Join("..", "..")
	return dir, ran(c)
})

// listed are the modules of the programs.
var listed = sync.OnceValues(func() ([]builtWith, error) { return (&release{source: "../.."}).modules(context.Background()) })

// packed makes what is published of a version for this machine, in a new folder.
func packed(version string) (*release, error) {
	source, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	bin, err := built()
	if err != nil {
		return nil, err
	}
	modules, err := listed()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		return nil, err
	}
	r := &release{version: version, commit: "c", time: time.Unix(1_700_000_000, 0).UTC(), source: source, out: filepath.Join(dir, "out"), scratch: dir, listed: modules, unpacked: true}
	to := filepath.Join(dir, here.String())
	if err := errors.Join(os.Mkdir(to, 0o700), os.Mkdir(r.out, 0o700)); err != nil {
		return nil, err
	}
	for _, program := range programs {
		err = errors.Join(err, os.Link(filepath.Join(bin, program), filepath.Join(to, program)))
	}
	if err != nil {
		return nil, err
	}
	return r, errors.Join(r.platform(context.Background(), here), r.container(), r.sums())
}

// present is the version that most tests look at.
var present = sync.OnceValues(func() (*release, error) { return packed("0.2.0") })

// made returns what pack has made.
func made(t *testing.T, pack func() (*release, error)) *release {
	if here.os != "linux" {
		t.Skip("NOT CHECKED: packages of Linux are made on Linux")
	}
	testenv.OnlyWithAll(t, "it builds packages")
	testenv.Command(t, "dpkg-deb")
	r, err := pack()
	require.NoError(t, err)
	return r
}

// The same programs become the same bytes, wherever and by whomever they are packed.
func TestPackagesAreTheSameEachTime(t *testing.T) {
	testenv.SkipUnderRace(t)
	first := made(t, present)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TZ", "Asia/Tokyo")
	defer syscall.Umask(syscall.Umask(0o077))
	second := made(t, func() (*release, error) { return packed("0.2.0") })
	sums := readIn(t, first, "SHA256SUMS")
	assert.Equal(t, sums, readIn(t, second, "SHA256SUMS"))
	require.Equal(t, 3, strings.Count(sums, "\n"), "archive, package, Containerfile")
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		assert.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256([]byte(readIn(t, second, name)))), name)
		assert.NotContains(t, readIn(t, second, name), os.Getenv("HOME"), "a path of this machine is in %s", name)
	}
}

func readIn(t *testing.T, r *release, name string) string {
	b, err := os.ReadFile(filepath.Join(r.out, name))
	require.NoError(t, err)
	return string(b)
}

// Two clones of the same commit, built with nothing in common, give equal bytes for each platform, which takes minutes.
// "-rounds 1" has one alone.
func TestReleasesAreTheSameEachTime(t *testing.T) {
	few := targets[:testenv.Rounds(0, len(targets))]
	if len(few) == 0 {
		t.Skip("the long form builds all platforms twice")
	}
	source, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	sums := map[string]string{}
	for range 2 {
		dir := t.TempDir()
		require.NoError(t, ran(exec.Command("git", "clone", "--quiet", source, filepath.Join(dir, "clone"))))
		source = filepath.Join(dir, "clone") // for the second one, lest somebody commits meanwhile
		t.Chdir(source)
		t.Setenv("GOCACHE", filepath.Join(dir, "cache"))
		for _, target := range few {
			out := filepath.Join(dir, target.String())
			require.NoError(t, run(t.Context(), []string{"0.2.0"}, out, target.String()))
			sum, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
			require.NoError(t, err)
			if before, ok := sums[target.String()]; ok {
				assert.Equal(t, before, string(sum), target)
			}
			sums[target.String()] = string(sum)
		}
	}
	assert.Len(t, sums, len(few))
}

// script executes a script of testdata in another root: a copy of the system of this machine that forgets what is
// written to it.
func script(t *testing.T, name string, args ...string) {
	unshare := testenv.Command(t, "unshare")
	probe := `mount -t tmpfs t /mnt && mkdir /mnt/u /mnt/w /mnt/m && mount -t overlay o -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/m && chroot /mnt/m true`
	if out, err := exec.Command(unshare, "--mount", "sh", "-c", probe).CombinedOutput(); err != nil {
		t.Skipf("NOT CHECKED: what packages and images do when they are installed: this machine does not let tests make another root: %v %s", err, out)
	}
	path, err := filepath.Abs(filepath.Join("testdata", name))
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), unshare, append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", path}, args...)...)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// The Debian package is installed, started, upgraded, removed, and purged.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	testenv.SkipUnderRace(t)
	earlier, later := made(t, func() (*release, error) { return packed("0.1.9") }), made(t, present)
	packageOf := func(r *release) string {
		return filepath.Join(r.out, fmt.Sprintf("tmshare_%s_%s.deb", r.version, here.arch))
	}
	address, err := testenv.FreeAddress()
	require.NoError(t, err)
	script(t, "debian.sh", packageOf(earlier), packageOf(later), address)
}

// The steps of the Containerfile make an image whose program runs without rights in a root that is read-only.
func TestContainer(t *testing.T) {
	t.Parallel()
	testenv.SkipUnderRace(t)
	r := made(t, present)
	address, err := testenv.FreeAddress()
	require.NoError(t, err)
	image := stepsOf(t, readIn(t, r, "Containerfile"), map[string]string{"VERSION": r.version, "TARGETARCH": here.arch})
	script(t, "container.sh", append([]string{filepath.Join(r.out, image.archive), image.run, image.copied, image.user, address, strings.Join(image.env, " ")}, image.command...)...)
}

// image is what the steps of a Containerfile say.
type image struct {
	archive, run, copied, user string
	env, command               []string
}

// stepsOf reads the steps of a Containerfile: those that ours has.
func stepsOf(t *testing.T, text string, args map[string]string) (i image) {
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(strings.ReplaceAll(text, "\\\n", ""), "")
	text = os.Expand(text, func(name string) string {
		require.Contains(t, args, name)
		return args[name]
	})
	stages := 0
	for line := range strings.Lines(text) {
		step, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		quoted := regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(rest, -1)
		switch step {
		case "FROM":
			stages++
			assert.Equal(t, map[int]bool{1: false, 2: true}[stages], rest == "scratch")
		case "ADD":
			i.archive = words[0]
			assert.Equal(t, "/unpacked/", words[1])
		case "RUN":
			i.run += rest + "\n"
		case "COPY":
			require.Equal(t, []string{"--from=files", "/"}, []string{words[0], words[2]})
			i.copied = words[1]
		case "USER":
			i.user = rest
		case "ENV":
			i.env = append(i.env, words...)
		case "ENTRYPOINT", "CMD":
			for _, word := range quoted {
				i.command = append(i.command, word[1])
			}
		case "", "ARG", "VOLUME", "EXPOSE":
		default:
			t.Errorf("the test does not know the step %s", step)
		}
	}
	assert.NotContains(t, []string{"", "0", "root"}, i.user)
	return i
}

// What the README and the guides link to, and the maps that their commands work with, are in an archive.
func TestArchivesHaveWhatDocumentsNeed(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	files, err := (&release{source: source}).documents(t.Context())
	require.NoError(t, err)
	there := map[string]bool{}
	for _, f := range files {
		there[f.name] = true
	}
	needed := 0
	for _, f := range files {
		if filepath.Ext(f.name) != ".md" || filepath.Dir(f.name) != "." && filepath.Dir(f.name) != "docs" {
			continue
		}
		text, err := os.ReadFile(f.from)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^):#]+)[^):]*\)|(testdata/\w+/\w+\.(?:xtm|ttl))`).FindAllStringSubmatch(string(text), -1) {
			name := m[2]
			if name == "" {
				name = filepath.ToSlash(filepath.Join(filepath.Dir(f.name), m[1]))
			}
			if filepath.Ext(name) == "" { // a folder of the source
				continue
			}
			needed++
			assert.True(t, there[name], "%s needs %s", f.name, name)
		}
	}
	assert.Greater(t, needed, 100)
}

// What a release has in it is for the platforms that are named, and nothing of one is in the other.
func TestArchivesOfWindowsAreZIP(t *testing.T) {
	t.Parallel()
	r := &release{version: "0.2.0", time: time.Unix(1_700_000_000, 0).UTC(), out: t.TempDir()}
	from := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(from, []byte("x"), 0o600))
	for _, target := range targets {
		require.NoError(t, r.archive(target, []file{{target.program("tmshare-server"), from, 0o755}}))
	}
	for name, begin := range map[string]string{"linux-arm64.tar.gz": "\x1f\x8b", "darwin-amd64.tar.gz": "\x1f\x8b", "windows-arm64.zip": "PK"} {
		assert.True(t, bytes.HasPrefix([]byte(readIn(t, r, "tmshare-0.2.0-"+name)), []byte(begin)), name)
	}
}
