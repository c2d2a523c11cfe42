package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func TestMain(m *testing.M) {
	testenv.InParallel()
	testscript.Main(m, map[string]func(){"tmshare-client": main})
}

// TestScripts runs the scripts in testdata/script. They have commands besides
// those of package testscript:
//
//	serve NAME=FILE...     start a server, $SERVER, with collections
//	publish NAME FILE      publish a new version of a collection
//	archive NAME           $ARCHIVE is a document of the records of a collection
//	files FOLDER           serve the files of a folder, at $FILES; what begins with "hang" never answers
//	many N                 serve N records, in $MANY/feed and in $MANY/list.xml
//	await FILE             wait until a file is there
//	break STATUS [PART]    answer requests for paths with a part in them so; 0: not at all
//	mend                   end that
//	asked PART             wait until a path with a part in it is asked for
//	exits CODE PROGRAM...  run a program that must end with an exit code
//	json PATH VALUE        compare a value in the JSON that the last program printed
//	hold FOLDER            keep a data folder open, as another process would
//	tamper FOLDER NAME SI  change the name of a topic in the store
//	damage FOLDER SI       cut the record of a topic, below the store
func TestScripts(t *testing.T) {
	testenv.SkipUnderRace(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Condition:           testenv.Condition,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			o := &origin{dir: filepath.Join(e.WorkDir, ".server")}
			e.Values[o.key()] = o
			e.Defer(o.close)
			for name, content := range map[string][]byte{"egov.xtm": maps.EGov, "libraries.xtm": maps.Libraries} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), content, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":   func(ts *testscript.TestScript, _ bool, args []string) { originOf(ts).serve(ts, args) },
			"publish": func(ts *testscript.TestScript, _ bool, args []string) { originOf(ts).publish(ts, args) },
			"archive": func(ts *testscript.TestScript, _ bool, args []string) { originOf(ts).archive(ts, args) },
			"files":   serveFiles,
			"many":    many,
			"await":   waitFor,
			"break":   func(ts *testscript.TestScript, _ bool, args []string) { originOf(ts).breakIt(ts, args) },
			"mend":    func(ts *testscript.TestScript, _ bool, _ []string) { originOf(ts).setFault(0, "\x00") },
			"asked":   func(ts *testscript.TestScript, neg bool, args []string) { originOf(ts).asked(ts, args) },
			"exits":   exits,
			"json":    inJSON,
			"hold":    hold,
			"tamper":  tamper,
			"damage":  damage,
		},
	})
}

// origin is the server of a script, with faults.
type origin struct {
	dir    string
	db     *store.DB
	server *server.Server
	socket *httptest.Server

	mu     sync.Mutex
	status int
	part   string // of the paths that are answered with the status
	paths  string
}

func (*origin) key() any { return "origin" }

func originOf(ts *testscript.TestScript) *origin { return ts.Value((*origin)(nil).key()).(*origin) }

func (o *origin) close() {
	if o.socket != nil {
		o.socket.CloseClientConnections()
		o.socket.Close()
		o.server.Close()
		o.db.Close()
	}
}

// start starts the server, without collections.
func (o *origin) start() error {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	if o.db, err = store.Open(context.Background(), store.Options{Dir: o.dir, Logger: log, Badger: badger.Small, Indexes: ext.Indexes()}); err != nil {
		return err
	}
	o.part = "\x00"
	o.socket = httptest.NewServer(http.HandlerFunc(o.answer))
	o.server, err = server.New(server.Config{Parts: ext.Parts(), Store: o.db, BaseURL: o.socket.URL, OnLoopback: true, Logger: log})
	return err
}

func (o *origin) create(name, content string) error {
	c := store.Collection{Name: name, SP: server.DefaultPrefix(o.socket.URL, name)}
	_, err := o.server.Import(context.Background(), c, strings.NewReader(content), name)
	return err
}

// put publishes a new version of a collection, past the faults.
func (o *origin) put(name, content string) error {
	r := httptest.NewRequest(http.MethodPut, o.socket.URL+"/topicmaps/"+name, strings.NewReader(content))
	r.Header.Set("TMShare-Max-Delete", "all")
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	o.server.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return fmt.Errorf("%d %s", w.Code, w.Body)
	}
	return nil
}

func (o *origin) serve(ts *testscript.TestScript, args []string) {
	ts.Check(o.start())
	for _, arg := range args {
		name, file, _ := strings.Cut(arg, "=")
		ts.Check(o.create(name, ts.ReadFile(file)))
	}
	ts.Setenv("SERVER", o.socket.URL)
	host := o.socket.Listener.Addr().String()
	ts.Setenv("HOST", host)
	ts.Setenv("PORT", host[strings.LastIndex(host, ":")+1:])
}

func (o *origin) answer(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.paths += r.URL.Path + "\n"
	status, broken := o.status, strings.Contains(r.URL.Path, o.part)
	o.mu.Unlock()
	switch {
	case !broken:
		o.server.ServeHTTP(w, r)
	case status == 0:
		<-r.Context().Done()
	default:
		w.WriteHeader(status)
	}
}

func (o *origin) publish(ts *testscript.TestScript, args []string) {
	ts.Check(o.put(args[0], ts.ReadFile(args[1])))
}

func (o *origin) archive(ts *testscript.TestScript, args []string) {
	w := httptest.NewRecorder()
	o.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, o.socket.URL+"/topicmaps/"+args[0]+"/records", nil))
	feed, err := feeds.Decode(w.Body, o.socket.URL, feeds.Limits{})
	ts.Check(err)
	l, ok := feed.Link("via")
	if !ok {
		ts.Fatalf("the feed of records has no link to its own document")
	}
	ts.Setenv("ARCHIVE", l.Href)
}

func (o *origin) breakIt(ts *testscript.TestScript, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	o.setFault(status, strings.Join(args[1:], ""))
}

func (o *origin) setFault(status int, part string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status, o.part, o.paths = status, part, ""
}

func (o *origin) asked(ts *testscript.TestScript, args []string) {
	for range 1000 {
		if o.wasAsked(args[0]) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nobody asked for %s", args[0])
}

// wasAsked reports whether a path with a part was requested since the last fault.
func (o *origin) wasAsked(part string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.paths, part)
}

// serveFiles serves a folder as a plain web server does.
func serveFiles(ts *testscript.TestScript, _ bool, args []string) {
	files := http.FileServer(http.Dir(ts.MkAbs(args[0])))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/hang") {
			if err := os.WriteFile(ts.MkAbs("hanging"), nil, 0o600); err == nil {
				<-r.Context().Done()
			}
			return
		}
		files.ServeHTTP(w, r)
	}))
	ts.Defer(func() { server.CloseClientConnections(); server.Close() })
	ts.Setenv("FILES", server.URL)
	ts.Setenv("FILES_DIR", strings.ReplaceAll(server.Listener.Addr().String(), ":", "+"))
}

// waitFor waits until a file is there.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	for range 1000 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s is not there", args[0])
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

func inJSON(ts *testscript.TestScript, _ bool, args []string) {
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	for step := range strings.SplitSeq(args[0], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			if step == "length" {
				value = len(v)
				break
			}
			i, err := strconv.Atoi(step)
			ts.Check(err)
			if i >= len(v) {
				ts.Fatalf("%s: only %d elements", args[0], len(v))
			}
			value = v[i]
		}
	}
	if got := fmt.Sprint(value); got != args[1] {
		ts.Fatalf("%s is %s, not %s", args[0], got, args[1])
	}
}

func open(ts *testscript.TestScript, dir string) *store.DB {
	db, err := store.Open(context.Background(), store.Options{Dir: ts.MkAbs(dir), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Badger: badger.Small, Indexes: ext.Indexes()})
	ts.Check(err)
	return db
}

func damage(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(stores.Below(ts.MkAbs(args[0]), func(engine kv.Engine) error {
		ctx := context.Background()
		reader, err := engine.Snapshot(ctx)
		if err != nil {
			return err
		}
		defer reader.Close()
		for r, err := range reader.Range(nil, keys.Space(keys.FirstNumber), false) {
			if err != nil {
				return err
			}
			if keys.Table(r.Key) != keys.TableTopic || string(keys.Rest(r.Key)) != args[1] {
				continue
			}
			w, err := engine.Begin(ctx, reader.Version())
			if err != nil {
				return err
			}
			return errors.Join(w.Put(bytes.Clone(r.Key), bytes.Clone(r.Value[1:])), w.Commit())
		}
		return fmt.Errorf("there is no topic %s", args[1])
	}))
}

func hold(ts *testscript.TestScript, _ bool, args []string) {
	db := open(ts, args[0])
	ts.Defer(func() { db.Close() })
}

func tamper(ts *testscript.TestScript, _ bool, args []string) {
	db := open(ts, args[0])
	defer db.Close()
	ts.Check(db.ApplyEntries(context.Background(), args[1], func(state *store.Applying) error {
		t, err := state.Topic(fragment.Ref(args[2]))
		if err != nil {
			return err
		}
		t.Names[0].Value = "tampered with"
		return state.PutTopic(t)
	}))
}
