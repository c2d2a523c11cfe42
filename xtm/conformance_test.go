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

// suite is a folder of cases: X in folder in with the canonical form X.cxtm in
// folder baseline, or in folder invalid.
type suite struct {
	name           string
	valid, invalid int               // how many cases there are
	reasons        map[string]string // why the invalid ones are refused, where they do not say so themselves
}

// The public suite has no reasons.
var suites = []suite{
	{"xtm1", 45, 2, map[string]string{
		"name-instance-of":              "<baseName> cannot hold <instanceOf> in XTM 1.0",
		"variants-nested-no-parameters": "<variant> has no <parameters>",
	}},
	{"xtm2", 57, 6, map[string]string{
		"id-invalid":                      `the id "2topic" of <topic> is not an XML name`,
		"no-version":                      "<topicMap> has no version",
		"reifier-elem-in-2.0":             "<reifier> is not part of XTM 2.0; the attribute is",
		"subjid-ref-in-2.0":               "<subjectIdentifierRef> is not part of XTM 2.0",
		"topic-no-id":                     "<topic> has no id, which XTM 2.0 requires",
		"variant-missing-scope-duplicate": `the scope of the <variant> "TOPIC!" adds no topic to that of its name`,
	}},
	{"xtm21", 18, 1, map[string]string{
		"reifier-el-and-attr": "<topicMap> has more than one reifier",
	}},
}

// ownSuites hold the project's own cases. Each begins with, or has beside it in
// a file X.xtm.reason, why it is refused.
var ownSuites = []suite{
	{name: "xtm1", valid: 43, invalid: 71},
	{name: "xtm2", valid: 22, invalid: 30},
	{name: "xtm21", valid: 18, invalid: 64},
}

func TestConformance(t *testing.T) {
	root := testenv.Shared(t, "conformance/cxtm")
	compared := comparisons{}
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) { runSuite(t, filepath.Join(root, s.name), s, compared) })
	}
	compared.report(t)
}

func TestOwnCases(t *testing.T) {
	compared := comparisons{}
	for _, s := range ownSuites {
		t.Run(s.name, func(t *testing.T) { runSuite(t, filepath.Join("..", "testdata", "xtm", s.name), s, compared) })
	}
	compared.report(t)
}

func runSuite(t *testing.T, dir string, s suite, compared comparisons) {
	passed := 0
	cases, err := filepath.Glob(filepath.Join(dir, "in", "*.xtm"))
	require.NoError(t, err)
	for _, path := range cases {
		name := filepath.Base(path)
		ok := t.Run(name, func(t *testing.T) {
			require.NoError(t, checkCase(t, path))
			roundTrip(t, path, compared)
		})
		if ok {
			passed++
		}
	}
	assert.Len(t, cases, s.valid, "valid cases")
	t.Logf("%d of %d valid cases passed", passed, len(cases))

	rejected := 0
	bad, err := filepath.Glob(filepath.Join(dir, "invalid", "*.xtm"))
	require.NoError(t, err)
	for _, path := range bad {
		ok := t.Run("invalid/"+filepath.Base(path), func(t *testing.T) {
			reason := s.reasons[strings.TrimSuffix(filepath.Base(path), ".xtm")]
			if s.reasons == nil {
				reason = statedReason(t, path)
			}
			require.NotEmpty(t, reason, "why the case is refused")
			_, err := readFile(t, path, false)
			var syntax *xtm.SyntaxError
			require.ErrorAs(t, err, &syntax)
			assert.NotZero(t, syntax.Line)
			assert.NotZero(t, syntax.Column)
			assert.NotEmpty(t, syntax.URI)
			assert.Contains(t, syntax.Reason, reason)
		})
		if ok {
			rejected++
		}
	}
	assert.Len(t, bad, s.invalid, "invalid cases")
	t.Logf("%d of %d invalid cases rejected, each for its reason", rejected, len(bad))
}

// statedReason returns the reason that an invalid case begins with, or that
// stands beside it where a comment would make it another case.
func statedReason(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	at := strings.Index(string(data), "<!-- reason: ")
	if at < 0 {
		data, err = os.ReadFile(path + ".reason")
		require.NoError(t, err, "a case without a reason")
		return strings.TrimSpace(string(data))
	}
	reason, _, ended := strings.Cut(string(data[at+len("<!-- reason: "):]), " -->")
	require.True(t, ended)
	return reason
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
	return xtm.Read(t.Context(), f, xtm.Options{Base: fileURL(path), Loader: loadFile, Lenient: lenient})
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

// trip is a way to write a map and to read it again.
type trip struct {
	name    string
	version xtm.Version
	names   xtm.NameTypes
}

var trips = []trip{
	{"XTM 1.0", xtm.V10, xtm.OmitNameTypes},
	{"XTM 1.0 with types of names", xtm.V10, xtm.OntopiaNameTypes},
	{"XTM 2.0", xtm.V20, xtm.OmitNameTypes},
	{"XTM 2.1", xtm.V21, xtm.OmitNameTypes},
}

// comparisons counts, for each trip, the maps that were the same after it, and
// those of them in which statements have item identifiers or reifiers.
type comparisons map[string]*struct{ all, identified, reified int }

func (c comparisons) report(t *testing.T) {
	for _, way := range trips {
		n := c[way.name]
		if assert.NotNil(t, n, "no round trip in %s was compared", way.name) {
			t.Logf("round trips in %s: %d compared, %d with item identifiers of statements, %d with reifiers", way.name, n.all, n.identified, n.reified)
			assert.Positive(t, n.all, way.name)
			assert.Positive(t, n.identified, way.name)
			assert.Positive(t, n.reified, way.name)
		}
	}
}

// roundTrip checks that a case means the same after it has been written and
// read again, in each version that can express it.
func roundTrip(t *testing.T, path string, compared comparisons) {
	base := fileURL(path)
	tm, err := readFile(t, path, false)
	require.NoError(t, err)
	want := canonical(t, tm, cxtm.Options{Base: base})
	for _, way := range trips {
		var doc bytes.Buffer
		losses, err := xtm.Write(&doc, tm, xtm.WriteOptions{Version: way.version, Base: base, NameTypes: way.names})
		var unwritable *xtm.EncodeError
		if way.version == xtm.V20 && errors.As(err, &unwritable) {
			continue
		}
		require.NoError(t, err, way.name)
		again, err := xtm.Read(t.Context(), bytes.NewReader(doc.Bytes()), xtm.Options{Base: base, Lenient: way.names == xtm.OntopiaNameTypes})
		require.NoError(t, err, "%s\n%s", way.name, doc.String())
		if way.version == xtm.V21 {
			// These contradict the data model, so that nothing else is possible.
			assert.Zero(t, losses.Total()-losses.Variants-losses.Associations)
		}
		if losses.Total() > 0 {
			continue
		}
		if way.version != xtm.V21 {
			dropMadeIDs(tm, again, base)
		}
		if assert.Equal(t, want, canonical(t, again, cxtm.Options{Base: base}), "%s\n%s", way.name, doc.String()) {
			compared.count(way.name, tm)
		}
	}
}

func (c comparisons) count(way string, tm *tmdm.TopicMap) {
	if c[way] == nil {
		c[way] = new(struct{ all, identified, reified int })
	}
	n := c[way]
	n.all++
	identified, reified := false, false
	look := func(s tmdm.Reifiable) {
		identified = identified || len(s.ItemIdentifiers()) > 0
		reified = reified || s.Reifier() != nil
	}
	look(tm)
	for t := range tm.Topics() {
		for _, name := range t.Names() {
			look(name)
			for _, v := range name.Variants() {
				look(v)
			}
		}
		for _, o := range t.Occurrences() {
			look(o)
		}
	}
	for a := range tm.Associations() {
		look(a)
		for _, r := range a.Roles() {
			look(r)
		}
	}
	if identified {
		n.identified++
	}
	if reified {
		n.reified++
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
