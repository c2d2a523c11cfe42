package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tmshare-server": main, "tmshare-client": func() { os.Exit(clientcmd.Main()) }})
}

// TestScripts runs the scripts in testdata/script. They have commands besides
// those of package testscript:
//
//	[!] get URL [NAME=VALUE]...  request a URL with headers; the answer is what stdout looks at
//	put URL FILE [NAME=VALUE]... send a file
//	ready                        wait until the server at $URL answers
//	shows PATH REGEXP            wait until what it has at the path matches
//	sigterm                      send SIGTERM to what runs in the background
//	exits CODE PROGRAM...        run a program that must end with an exit code
//	hold FOLDER                  keep a data folder open, as another process would
//	rmfiles FOLDER               remove all files below a folder
//	cut FILE                     remove the last half of a file
//
// $LISTEN is an address that is free, and $URL the server's on it.
func TestScripts(t *testing.T) {
	testenv.SkipUnderRace(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("LISTEN", l.Addr().String())
			e.Setenv("URL", "http://"+l.Addr().String())
			for name, content := range map[string][]byte{"egov.xtm": maps.EGov, "libraries.xtm": maps.Libraries} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), content, 0o600); err != nil {
					return err
				}
			}
			return l.Close()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"get":     get,
			"put":     put,
			"ready":   ready,
			"shows":   shows,
			"sigterm": sigterm,
			"exits":   exits,
			"hold":    hold,
			"rmfiles": rmfiles,
			"cut":     cut,
		},
	})
}

func rmfiles(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = os.Remove(path)
		}
		return err
	}))
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), info.Size()/2))
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, neg, http.MethodGet, args[0], nil, args[1:])
}

func put(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, neg, http.MethodPut, args[0], strings.NewReader(ts.ReadFile(args[1])), args[2:])
}

func request(ts *testscript.TestScript, neg bool, method, url string, body io.Reader, headers []string) {
	r, err := http.NewRequest(method, url, body)
	ts.Check(err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, "=")
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(err)
	if failed := res.StatusCode != http.StatusOK; failed != neg {
		ts.Fatalf("%s %s: %s", method, url, res.Status)
	}
}

func ready(ts *testscript.TestScript, _ bool, _ []string) {
	for range 1000 {
		if res, err := http.Get(ts.Getenv("URL") + "/healthz"); err == nil {
			res.Body.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("the server at %s does not answer", ts.Getenv("URL"))
}

func shows(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	var body []byte
	for range 1000 {
		if res, err := http.Get(ts.Getenv("URL") + args[0]); err == nil {
			body, _ = io.ReadAll(res.Body) // cut off: it does not match
			res.Body.Close()
			if pattern.Match(body) {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("%s does not show %s but\n%s", args[0], args[1], body)
}

func sigterm(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

func hold(ts *testscript.TestScript, _ bool, args []string) {
	db, err := store.Open(context.Background(), store.Options{Dir: ts.MkAbs(args[0]), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ts.Check(err)
	ts.Defer(func() { db.Close() })
}
