package fragment_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

var xtm10 = fragment.Form{Version: xtm.V10, SP: sp}

// documents10 writes everything that a map can be served as in XTM 1.0.
func documents10(t *testing.T, m *fragment.Map) map[string][]byte {
	documents := map[string][]byte{}
	var snapshot bytes.Buffer
	require.NoError(t, fragment.WriteSnapshot(&snapshot, m, xtm10))
	documents["snapshot"] = snapshot.Bytes()
	for topic := range m.Topics() {
		key := fragment.Key(topic.TopicSI())
		var live, gone bytes.Buffer
		require.NoError(t, fragment.Write(&live, m, topic.TopicSI(), xtm10))
		require.NoError(t, fragment.WriteTombstone(&gone, topic.Identity, xtm10))
		documents["fragment-"+key], documents["tombstone-"+key] = live.Bytes(), gone.Bytes()
	}
	return documents
}

// everything is a map in which all that a fragment can hold occurs, several
// subject locators and characters that XML escapes included.
func everything(t *testing.T) *fragment.Map {
	return published(t, nil, func(m draft) {
		base(m)
		full := m.Topic("http://full?x=1&y=<2>", "http://full/é 東京")
		for i := range 3 {
			require.NoError(t, full.AddSubjectLocator(tmdm.Locator(fmt.Sprint("http://document/", i))))
		}
		n := full.AddName("<name> & \"more\"", m.Topic(d), m.Topic(a), m.Topic(b))
		v := n.AddVariant("http://variant", tmdm.XSDAnyURI, m.Topic(c))
		n.AddVariant("12", tmdm.XSDInteger, m.Topic(d))
		o := full.AddOccurrence("http://occurrence?a=1&b=2", tmdm.XSDAnyURI, m.Topic(x), m.Topic(c))
		full.AddOccurrence("", tmdm.XSDString, m.Topic(xtm.PSIOccurrence))
		full.AddType(m.Topic(b))
		association := m.Associate(x, full, m.Topic(a), m.Topic(e))
		for i, reified := range []tmdm.Reifiable{n, v, o, association, association.Roles()[1]} {
			m.Reify(reified, tmdm.Locator(fmt.Sprint("http://reifier/", i)))
			require.NoError(t, tmdm.AddItemIdentifier(reified, tmdm.Locator(fmt.Sprint(sp, "#id", i))))
		}
	})
}

// The XTM 1.0 form is valid XTM 1.0, by the DTD.
func TestWhatIsServedInXTM10IsValid(t *testing.T) {
	dtd, xmllint := testenv.Shared(t, "schemas/xtm1.dtd"), testenv.Command(t, "xmllint")
	dir := t.TempDir()
	args := []string{"--noout", "--nonet", "--dtdvalid", dtd}
	lint := func(files []string) (string, error) {
		out, err := exec.Command(xmllint, append(args, files...)...).CombinedOutput()
		return fmt.Sprintf("%.5000s", out), err
	}
	var files []string
	for i, m := range []*fragment.Map{everything(t), randomMap(t, 1), randomMap(t, 2)} {
		for name, document := range documents10(t, m) {
			file := filepath.Join(dir, fmt.Sprint(i, "-", name, ".xtm"))
			require.NoError(t, os.WriteFile(file, document, 0o600))
			files = append(files, file)
		}
	}
	require.Greater(t, len(files), 80)
	out, err := lint(files)
	require.NoError(t, err, out)

	bad := filepath.Join(dir, "bad.xtm") // the check itself must be able to fail
	require.NoError(t, os.WriteFile(bad, []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/"><topic/></topicMap>`), 0o600))
	_, err = lint([]string{bad})
	require.Error(t, err)
}

// The ids that XTM 1.0 asks of topics are unique and stable within a collection:
// a client that takes them for item identifiers merges no two topics, and finds
// each again.
func TestIdsOfTopicsInXTM10AreUniqueAndStable(t *testing.T) {
	ids := map[tmdm.Locator]fragment.Ref{} // from an id to the TopicSI
	topics := map[fragment.Ref]tmdm.Locator{}
	for name, doc := range documents10(t, everything(t)) {
		for _, topic := range decode(t, doc).topics {
			if len(topic.SubjectIdentifiers) == 0 || strings.HasPrefix(string(topic.ItemIdentifiers[0]), sp+"#r-") {
				continue // a further subject locator or a reification of a topic
			}
			id, ref := topic.ItemIdentifiers[0], topic.SubjectIdentifiers[0]
			require.Contains(t, []fragment.Ref{"", ref}, ids[id], "%s: one id, two topics", name)
			require.Contains(t, []tmdm.Locator{"", id}, topics[ref], "%s: one topic, two ids", name)
			ids[id], topics[ref] = ref, id
		}
	}
	require.Greater(t, len(ids), 10)
}

// XTM 1.0 has no types of names and no datatypes. All else arrives.
func TestFragmentsInXTM10LoseNameTypesAndDatatypesAlone(t *testing.T) {
	m := everything(t)
	for topic := range m.Topics() {
		var doc bytes.Buffer
		require.NoError(t, fragment.Write(&doc, m, topic.TopicSI(), xtm10))
		f, err := fragment.Read(t.Context(), &doc, xtm.Options{Base: sp}, topic.TopicSI())
		require.NoError(t, err)
		expected, err := fragment.UnmarshalTopic(fragment.MarshalTopic(topic))
		require.NoError(t, err)
		for i := range expected.Names {
			expected.Names[i].Type = tmdm.PSIDefaultNameType
			for j := range expected.Names[i].Variants {
				lossy(&expected.Names[i].Variants[j].Datatype)
			}
		}
		for i := range expected.Occurrences {
			lossy(&expected.Occurrences[i].Datatype)
		}
		require.True(t, fragment.SameTopic(expected, f.Topic), "%+v\n%+v", expected, f.Topic)
		associations := associationsOf(t, m, topic.TopicSI(), fragment.Parts[:]...)
		require.Len(t, f.Associations, len(associations))
		for i := range associations {
			require.True(t, fragment.SameAssociation(associations[i], f.Associations[i]))
		}
	}
}

func lossy(datatype *string) {
	if *datatype != tmdm.XSDAnyURI {
		*datatype = tmdm.XSDString
	}
}
