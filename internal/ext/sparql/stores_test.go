package sparql

import (
	"archive/zip"
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/consumed"
)

// oxigraph starts the store Oxigraph, and returns its URL.
func oxigraph(t testing.TB) string {
	modules := os.Getenv("TMSHARE_OXIGRAPH")
	if modules == "" {
		t.Skip("NOT CHECKED: targets in Oxigraph: run \"npm install oxigraph\", and set TMSHARE_OXIGRAPH to the folder " +
			"node_modules")
	}
	cmd := exec.Command(testenv.Command(t, "node"), "testdata/oxigraph.cjs", modules)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// storeServer is a server of a store with a folder of its own, which may be killed and started again.
type storeServer struct {
	t       testing.TB
	dir     string
	URL     string
	queries string // path, of queries by anybody
	program []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when cmd has
}

// free returns a free address.
func free(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// jars are those of the store of Apache Jena that Fuseki serves, in Debian's folder.
const jars = "jena-arq jena-base jena-core jena-iri jena-shacl jena-tdb2 jena-dboe-base jena-dboe-index jena-dboe-storage " +
	"jena-dboe-trans-data jena-dboe-transaction commons-codec commons-compress commons-csv commons-io commons-lang3 " +
	"dexx.collection gson guava thrift protobuf slf4j-api slf4j-nop jsonld-java jackson-core jackson-databind " +
	"jackson-annotations titanium-json-ld httpclient httpcore commons-logging commons-cli"

// newJena starts a store of Apache Jena with the addresses of Fuseki.
func newJena(t testing.TB) *storeServer {
	java := testenv.Command(t, "java")
	testenv.Command(t, "javac")
	at := free(t)
	v := &storeServer{t: t, dir: t.TempDir(), URL: "http://" + at, queries: "/ds/query"}
	core, err := zip.OpenReader("/usr/share/java/jena-core.jar")
	if err != nil {
		t.Skip("NOT CHECKED: targets in Apache Jena, which is not installed (Debian: libapache-jena-java)")
	}
	defer core.Close()
	messages := filepath.Join(v.dir, "messages") // Debian's are in another folder than its classes look for them
	for _, f := range core.File {
		if _, name, ok := strings.Cut(f.Name, "jena/ext/xerces/"); ok && strings.HasSuffix(name, ".properties") {
			from, err := f.Open()
			require.NoError(t, err)
			data, err := io.ReadAll(from)
			require.NoError(t, err)
			to := filepath.Join(messages, "xerces", name)
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
			require.NoError(t, os.WriteFile(to, data, 0o600))
		}
	}
	paths := []string{messages}
	for _, jar := range strings.Fields(jars) {
		paths = append(paths, "/usr/share/java/"+jar+".jar")
	}
	classes := filepath.Join(v.dir, "classes")
	out, err := exec.Command("javac", "-cp", strings.Join(paths, ":"), "-d", classes, "testdata/Jena.java").CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, port, _ := strings.Cut(at, ":")
	v.program = []string{java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(append(paths, classes), ":"), "Jena",
		filepath.Join(v.dir, "db"), port}
	v.start()
	t.Cleanup(v.kill)
	return v
}

func newVirtuoso(t testing.TB) *storeServer {
	program := testenv.Command(t, "virtuoso-t")
	sql, web := free(t), free(t)
	v := &storeServer{t: t, dir: t.TempDir(), URL: "http://" + web, queries: "/sparql"}
	v.program = []string{program, "+foreground", "+configfile", filepath.Join(v.dir, "virtuoso.ini")}
	files := ""
	for _, name := range []string{"DatabaseFile db", "ErrorLogFile log", "LockFile lck", "TransactionFile trx", "xa_persistent_file pxa"} {
		key, file, _ := strings.Cut(name, " ")
		files += fmt.Sprintf("%s = %s\n", key, filepath.Join(v.dir, "virtuoso."+file))
	}
	ini := fmt.Sprintf("[Database]\n%sFileExtend = 200\nTempStorage = TempDatabase\n[TempDatabase]\nDatabaseFile = %s\n"+
		"TransactionFile = %[3]s\n[Parameters]\nServerPort = %[4]s\nDisableUnixSocket = 1\nDirsAllowed = %[5]s\n"+
		"NumberOfBuffers = 10000\nMaxDirtyBuffers = 6000\n[HTTPServer]\nServerPort = %[6]s\nServerRoot = %[5]s\n"+
		"[SPARQL]\nResultSetMaxRows = 10000\n", files, filepath.Join(v.dir, "temp.db"), filepath.Join(v.dir, "temp.trx"), sql,
		v.dir, web)
	require.NoError(t, os.WriteFile(filepath.Join(v.dir, "virtuoso.ini"), []byte(ini), 0o600))
	require.NoError(t, os.WriteFile(v.password(), []byte("dba: dba\n"), 0o600))
	v.start()
	t.Cleanup(v.kill)
	return v
}

func (v *storeServer) password() string { return filepath.Join(v.dir, "password") }

// start starts the server, and waits until it answers queries. One that ends before that is started again: another
// process may have had its port for a moment.
func (v *storeServer) start() {
	v.run()
	defer func() {
		if v.t.Failed() {
			log, err := os.ReadFile(filepath.Join(v.dir, "virtuoso.log"))
			v.t.Logf("the log of the store ends: %s (%v)", log[max(0, len(log)-5000):], err)
		}
	}()
	require.Eventually(v.t, func() bool {
		select {
		case <-v.ended:
			v.t.Log("the store has ended before it answered:", v.cmd.ProcessState)
			v.kill()
			v.run()
		default:
		}
		ctx, stop := context.WithTimeout(v.t.Context(), 10*time.Second)
		defer stop()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.URL+v.queries, strings.NewReader("query=ASK%20%7B%7D"))
		if err != nil {
			return false
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond)
}

func (v *storeServer) run() {
	v.cmd, v.ended = exec.Command(v.program[0], v.program[1:]...), make(chan struct{})
	v.cmd.Dir = v.dir
	require.NoError(v.t, v.cmd.Start())
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(v.cmd, v.ended)
}

// kill ends the server by SIGKILL.
func (v *storeServer) kill() {
	_ = v.cmd.Process.Kill()
	<-v.ended
	_ = os.Remove(filepath.Join(v.dir, "virtuoso.lck"))
}

// killable are stores that keep their data in a folder.
var killable = map[string]func(testing.TB) (*storeServer, *Target){
	"virtuoso": func(t testing.TB) (*storeServer, *Target) {
		v := newVirtuoso(t)
		return v, &Target{Update: v.URL + "/sparql-auth", Query: v.URL + "/sparql-auth", PasswordFile: v.password()}
	},
	"jena": func(t testing.TB) (*storeServer, *Target) {
		v := newJena(t)
		return v, &Target{Update: v.URL + "/ds/update", Query: queryAddress(v.URL + "/ds/update")}
	},
}

// realStores start stores, and return targets in them.
var realStores = map[string]func(t *testing.T) *Target{
	"oxigraph": func(t *testing.T) *Target {
		at := oxigraph(t)
		return &Target{Update: at + "/update", Query: at + "/query"}
	},
	"virtuoso": func(t *testing.T) *Target { _, target := killable["virtuoso"](t); return target },
	"jena":     func(t *testing.T) *Target { _, target := killable["jena"](t); return target },
}

// A large graph is compared in ranges: of subjects, and of objects of one subject.
func TestRealStoresCompareLargeGraphs(t *testing.T) {
	testenv.OnlyWithAll(t, "it starts stores")
	for name, start := range realStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := consumed.OpenStore(t)
			src := consumed.NewCollection(t, db)
			k := addTarget(t, db, start(t))
			all := []any{about(storetest.Ref(5000))}
			for i := range 12_000 {
				all = append(all, about(storetest.Ref(i+10_000)), stated(storetest.Ref(5000), storetest.Ref(i+10_000)))
			}
			src.Publish(t, published(t, memoryOf(t, all...)))
			_, err := k.step(t.Context())
			require.NoError(t, err)
			result, err := k.compareNow(t.Context(), false)
			require.NoError(t, err)
			require.True(t, result.Equal(), "%+v", result)
		})
	}
}

// Random changes, and what stores make of values, arrive in real stores.
func TestRealStoresAreKeptInStep(t *testing.T) {
	testenv.OnlyWithAll(t, "it starts stores")
	for name, start := range realStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := start(t)
			db := consumed.OpenStore(t)
			src := consumed.NewCollection(t, db)
			change := consumed.Edits(t, testenv.Seed())
			k := addTarget(t, db, target)
			notes := &noting{RoundTripper: k.store.fetcher.HTTP.Transport}
			k.store.fetcher.HTTP.Transport = notes
			inStep := func(what ...any) {
				t.Helper()
				_, err := k.step(t.Context())
				require.NoError(t, err, what...)
				result, err := k.compareNow(t.Context(), false)
				require.NoError(t, err, what...)
				require.True(t, result.Equal(), "%v: %+v\n%s", what, result, strings.Join(notes.sent, "\n\n"))
			}
			for i := range testenv.Rounds(10, 50) {
				src.Publish(t, change)
				inStep(i)
			}
			a := storetest.Ref(1)
			for _, texts := range [][]string{
				{"1^^integer", "1.0^^decimal", "01^^integer", "true^^boolean", "1^^long", "text", "1"},
				{"1.0^^decimal", "true^^boolean", `quotes " and \ and ` + "\n\t", "Ä 𝄞 \u200e"},
				{"1^^integer", "99999999999999999999^^integer", "abc^^integer", "2026-01-01T00:00:00.123456789Z^^dateTime"},
				{"P1Y^^duration", "<b>^^string", "2026-01-01^^date"},
				{},
			} {
				src.Publish(t, published(t, memoryOf(t, about(a, texts...))))
				_, err := k.step(t.Context())
				require.NoError(t, err)
				result, err := k.compareNow(t.Context(), true)
				require.NoError(t, err)
				assert.LessOrEqual(t, result.Missing, len(k.Refused)+result.Changed, "%q: %+v", texts, result)
			}
			require.Empty(t, k.Refused)
			inStep("the values are gone")
		})
	}
}

// A store that is killed at any moment is in step in the end.
func TestStoresAreKilled(t *testing.T) {
	testenv.OnlyWithAll(t, "it starts stores")
	for name, start := range killable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, target := start(t)
			db := consumed.OpenStore(t)
			src := consumed.NewCollection(t, db)
			k := addTarget(t, db, target)
			random := rand.New(rand.NewPCG(testenv.Seed(), 1))
			for i := range testenv.Rounds(3, 100) {
				var all []any
				for n := range 1 + random.IntN(1500) {
					all = append(all, about(storetest.Ref(n), fmt.Sprint("round ", i)))
				}
				src.Publish(t, published(t, memoryOf(t, all...)))
				ctx, stop := context.WithTimeout(t.Context(), time.Duration(random.IntN(600))*time.Millisecond)
				_, _ = k.step(ctx)
				stop()
				v.kill()
				v.start()
				for range 2 {
					_, err := k.step(t.Context())
					require.NoError(t, err)
				}
				result, err := k.compareNow(t.Context(), false)
				require.NoError(t, err)
				require.True(t, result.Equal(), "round %d: %+v", i, result)
			}
		})
	}
}

// RealStores is realStores, for tests of other packages.
var RealStores = realStores

// Kept brings a graph of the collection m in step, and returns a function that queries the store for a variable.
func Kept(t *testing.T, db *store.DB, target *Target) (inStep func(), ask func(query, variable string) []string) {
	k := addTarget(t, db, target)
	return func() {
			t.Helper()
			_, err := k.step(t.Context())
			require.NoError(t, err)
		}, func(query, variable string) []string {
			t.Helper()
			all, err := k.store.values(t.Context(), query, variable)
			require.NoError(t, err, query)
			return all
		}
}

// Graph is the graph of these targets.
const Graph = graph
