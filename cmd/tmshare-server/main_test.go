package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func TestMain(m *testing.M) {
	testenv.InParallel()
	testscript.Main(m, map[string]func(){
		"tmshare-server": func() { os.Exit(execute(without)) }, "tmshare-client": func() { os.Exit(clientcmd.Main(without)) },
	})
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
//	nodes TOPOLOGY...            run nodes that are killed at random; $TMSHARE_NODES_SEED, or -seed, sets what happens
//
// $LISTEN is an address that is free, and $URL the server's on it; $LISTEN2 and $URL2 are another one's.
func TestScripts(t *testing.T) {
	testenv.SkipUnderRace(t)
	testscript.Run(t, scripts("testdata/script", nil))
}

// TestScriptsOnDatabase runs the scripts in testdata/database. $STORE is the address of an empty database, $STORE_DOWN
// one without a server.
func TestScriptsOnDatabase(t *testing.T) {
	testenv.SkipUnderRace(t)
	database := pgserver.Start(t, "fsync=off").URL()
	testscript.Run(t, scripts("testdata/database", map[string]string{"STORE": database, "STORE_DOWN": "postgres://tmshare@127.0.0.1:9/postgres"}))
}

// scripts are those in a folder, with variables.
func scripts(dir string, variables map[string]string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Condition:           testenv.Condition,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			for name, value := range variables {
				e.Setenv(name, value)
			}
			for _, n := range []string{"", "2"} {
				address, err := testenv.FreeAddress()
				if err != nil {
					return err
				}
				e.Setenv("LISTEN"+n, address)
				e.Setenv("URL"+n, "http://"+address)
			}
			habitats, err := os.ReadFile(filepath.Join("..", "..", "testdata", "skos", "habitats.ttl"))
			if err != nil {
				return err
			}
			for name, content := range map[string][]byte{"egov.xtm": maps.EGov, "libraries.xtm": maps.Libraries, "habitats.ttl": habitats} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), content, 0o600); err != nil {
					return err
				}
			}
			return nil
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
			"nodes":   nodes,
		},
	}
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

func ready(ts *testscript.TestScript, _ bool, args []string) {
	url := ts.Getenv("URL")
	if len(args) > 0 {
		url = args[0]
	}
	for range 1000 {
		if res, err := http.Get(url + "/healthz"); err == nil {
			res.Body.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("the server at %s does not answer", url)
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

func TestSettingsAreShownAsFlagsTakeThem(t *testing.T) {
	var all server.CollectionSettings
	require.NoError(t, json.Unmarshal([]byte(`{"title":"0","documentSize":0,"omitInstances":true,"recordFormats":["xtm1","xtm2.1"],"keepEntries":18446744073709551615,
		"snapshotAfter":"0s","keepFor":"2160h0m0s","resourceSync":false,"mirrors":["http://a.example.org/m","http://b.example.org/m"],"derivedFrom":["a","b"]}`), &all))
	var out bytes.Buffer
	r := remote{out: &out}
	require.NoError(t, r.printSettings(&extension.App{Extensions: ext.All()}, "egov", "", all))
	shows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, value, _ := strings.Cut(line, " ")
		shows[name] = strings.TrimSpace(value)
	}
	assert.Equal(t, map[string]string{
		"collection": "egov", "sp": "-", "title": "0", "summary": "-", "language": "-", "document-size": "-", "omit-instances": "true", "record-formats": "xtm1,xtm2.1", "rdf": "false",
		"snapshot-every": "-", "snapshot-after": "-", "snapshots-kept": "-", "keep-entries": "18446744073709551615", "keep-for": "2160h0m0s", "resource-sync": "false",
		"mirrors": "http://a.example.org/m,http://b.example.org/m", "via": "-", "changes-per-list": "-", "change-list-after": "-", "sign": "-", "derived-from": "a, b",
	}, shows)
}

// A bar shows the progress of an upload, and that the server has not answered yet. It is removed at the end.
func TestAnUploadShowsHowFarItIs(t *testing.T) {
	var shown testenv.Log
	r := &counted{r: io.MultiReader(strings.NewReader("half"), iotest.OneByteReader(strings.NewReader("half"))), size: 8}
	done := reporting(extension.NewDisplay(&control.Request{Stderr: &shown, StderrTerminal: true}, false, false), "map.xtm", r)
	_, err := r.Read(make([]byte, 4))
	require.NoError(t, err)
	testenv.Eventually(t, func() bool { return strings.Contains(shown.String(), "map.xtm: sending: 0.0 of 0.0 MB (50 %)") })
	_, err = io.ReadAll(r)
	require.NoError(t, err)
	testenv.Eventually(t, func() bool { return strings.Contains(shown.String(), "map.xtm: sent, waiting for the server") })
	done()
	assert.True(t, strings.HasSuffix(shown.String(), "\r\x1b[K"), "%q", shown.String())
}
