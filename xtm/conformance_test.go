package xtm_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// suites are the folders of cases, X in folder in with the canonical form
// X.cxtm in folder baseline, or in folder invalid. Known failures carry a
// reason, and fail when they start to pass.
var suites = []struct {
	name           string
	valid, invalid int // how many cases there are
	known          map[string]string
}{
	{"xtm1", 45, 2, nil},
	{"xtm2", 57, 6, nil},
	{"xtm21", 18, 1, nil},
}

func TestConformance(t *testing.T) {
	root := testenv.Shared(t, "conformance/cxtm")
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			runSuite(t, filepath.Join(root, s.name), s.valid, s.invalid, s.known)
		})
	}
}

// The project's own cases have the same form.
func TestOwnCases(t *testing.T) {
	for _, s := range []struct {
		name           string
		valid, invalid int
	}{{"xtm1", 16, 27}, {"xtm21", 8, 21}} {
		t.Run(s.name, func(t *testing.T) {
			runSuite(t, filepath.Join("..", "testdata", "xtm", s.name), s.valid, s.invalid, nil)
		})
	}
}

func runSuite(t *testing.T, dir string, valid, invalid int, known map[string]string) {
	passed := 0
	cases, err := filepath.Glob(filepath.Join(dir, "in", "*.xtm"))
	require.NoError(t, err)
	for _, path := range cases {
		name := filepath.Base(path)
		ok := t.Run(name, func(t *testing.T) {
			err := checkCase(t, path)
			if reason, isKnown := known[name]; isKnown {
				assert.Error(t, err, "passes now, although: %s", reason)
				return
			}
			require.NoError(t, err)
			roundTrip(t, path)
		})
		if ok {
			passed++
		}
	}
	assert.Len(t, cases, valid, "valid cases")
	t.Logf("%d of %d valid cases passed, of them %d known failures", passed, len(cases), len(known))

	rejected := 0
	bad, err := filepath.Glob(filepath.Join(dir, "invalid", "*.xtm"))
	require.NoError(t, err)
	for _, path := range bad {
		ok := t.Run("invalid/"+filepath.Base(path), func(t *testing.T) {
			_, err := readFile(t, path, false)
			var syntax *xtm.SyntaxError
			require.ErrorAs(t, err, &syntax)
			assert.NotZero(t, syntax.Line)
			assert.NotZero(t, syntax.Column)
			assert.NotEmpty(t, syntax.URI)
			t.Log(err)
		})
		if ok {
			rejected++
		}
	}
	assert.Len(t, bad, invalid, "invalid cases")
	t.Logf("%d of %d invalid cases rejected", rejected, len(bad))
}

func fileURL(path string) tmdm.Locator {
	abs, _ := filepath.Abs(path)
	return tmdm.Locator("file://" + filepath.ToSlash(abs))
}

// loadFile opens what mergeMap names beside the cases.
func loadFile(l tmdm.Locator) (io.ReadCloser, error) {
	path, ok := strings.CutPrefix(string(l), "file://")
	if !ok {
		return nil, errors.New("only files are loaded here")
	}
	return os.Open(path)
}

func readFile(t testing.TB, path string, lenient bool) (*tmdm.TopicMap, error) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	return xtm.Read(f, xtm.Options{Base: fileURL(path), Loader: loadFile, Lenient: lenient})
}

func canonical(t testing.TB, tm *tmdm.TopicMap, o cxtm.Options) string {
	var out bytes.Buffer
	require.NoError(t, cxtm.Write(&out, tm, o))
	return out.String()
}

// checkCase compares a case with its baseline.
func checkCase(t *testing.T, path string) error {
	tm, err := readFile(t, path, false)
	if err != nil {
		return err
	}
	want, err := os.ReadFile(filepath.Join(filepath.Dir(path), "..", "baseline", filepath.Base(path)+".cxtm"))
	require.NoError(t, err)
	got := canonical(t, tm, cxtm.Options{Base: fileURL(path)})
	if got != string(want) {
		return errors.New("the canonical form differs:\n" + got)
	}
	return nil
}

// roundTrip checks that a case means the same after it has been written and
// read again, in all versions.
func roundTrip(t *testing.T, path string) {
	base := fileURL(path)
	tm, err := readFile(t, path, false)
	require.NoError(t, err)
	for _, v := range []xtm.Version{xtm.V10, xtm.V20, xtm.V21} {
		var doc bytes.Buffer
		losses, err := xtm.Write(&doc, tm, xtm.WriteOptions{Version: v, Base: base})
		require.NoError(t, err, v)
		again, err := xtm.Read(bytes.NewReader(doc.Bytes()), xtm.Options{Base: base})
		require.NoError(t, err, "%s\n%s", v, doc.String())
		if v == xtm.V21 {
			// These contradict the data model, so that nothing else is to be had.
			assert.Zero(t, losses.Total()-losses.Variants-losses.Associations)
		}
		if losses.Total() > 0 {
			continue
		}
		if v != xtm.V21 {
			dropMadeIDs(tm, again, base)
		}
		assert.Equal(t, canonical(t, tm, cxtm.Options{Base: base}), canonical(t, again, cxtm.Options{Base: base}), "%s\n%s", v, doc.String())
	}
}

// dropMadeIDs takes from the topics of again the item identifiers that the ids
// made up by the writer stand for.
func dropMadeIDs(tm, again *tmdm.TopicMap, base tmdm.Locator) {
	for topic := range again.Topics() {
		for _, l := range topic.ItemIdentifiers() {
			for _, prefix := range []string{"#t-", "#r-", "#anonymous-"} {
				if strings.HasPrefix(string(l), string(base)+prefix) && tm.ConstructByItemIdentifier(l) == nil {
					tmdm.RemoveItemIdentifier(topic, l)
				}
			}
		}
	}
}
