package sparql

import (
	"bufio"
	"context"
	"fmt"
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

// virtuoso is a server of Virtuoso, with a folder of its own.
type virtuoso struct {
	t       testing.TB
	program string
	dir     string
	URL     string
	cmd     *exec.Cmd
}

func newVirtuoso(t testing.TB) *virtuoso {
	v := &virtuoso{t: t, program: testenv.Command(t, "virtuoso-t"), dir: t.TempDir()}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		return l.Addr().String()
	}
	sql, web := free(), free()
	v.URL = "http://" + web
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

func (v *virtuoso) password() string { return filepath.Join(v.dir, "password") }

func (v *virtuoso) start() {
	v.cmd = exec.Command(v.program, "+foreground", "+configfile", filepath.Join(v.dir, "virtuoso.ini"))
	v.cmd.Dir = v.dir
	require.NoError(v.t, v.cmd.Start())
	require.Eventually(v.t, func() bool {
		res, err := http.Get(v.URL + "/sparql?query=ASK%7B%7D")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
}

// kill ends the server by SIGKILL.
func (v *virtuoso) kill() {
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
	_ = os.Remove(filepath.Join(v.dir, "virtuoso.lck"))
}

// realStores start stores, and return targets in them.
var realStores = map[string]func(t *testing.T) *Target{
	"oxigraph": func(t *testing.T) *Target {
		at := oxigraph(t)
		return &Target{Update: at + "/update", Query: at + "/query"}
	},
	"virtuoso": func(t *testing.T) *Target {
		v := newVirtuoso(t)
		return &Target{Update: v.URL + "/sparql-auth", Query: v.URL + "/sparql-auth", PasswordFile: v.password()}
	},
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
func TestVirtuosoIsKilled(t *testing.T) {
	testenv.OnlyWithAll(t, "it starts stores")
	v := newVirtuoso(t)
	db := consumed.OpenStore(t)
	src := consumed.NewCollection(t, db)
	k := addTarget(t, db, &Target{Update: v.URL + "/sparql-auth", Query: v.URL + "/sparql-auth", PasswordFile: v.password()})
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
		_, err := k.step(t.Context())
		require.NoError(t, err)
		_, err = k.step(t.Context())
		require.NoError(t, err)
		result, err := k.compareNow(t.Context(), false)
		require.NoError(t, err)
		require.True(t, result.Equal(), "round %d: %+v", i, result)
	}
}
