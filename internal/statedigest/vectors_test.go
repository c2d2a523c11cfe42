package statedigest_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/xtm"
)

// vector is a map, its records, and its digest.
type vector struct {
	Map     string   `json:"map"`               // path of the file, from the folder testdata
	Prefix  string   `json:"prefix"`            // source locator prefix
	Records []record `json:"records,omitempty"` // in the order of their items; left out of large maps
	Digest  string   `json:"digest"`
}

type record struct {
	Kind    string `json:"kind"`
	Owner   string `json:"owner"`
	Content string `json:"content"` // hexadecimal
	Item    string `json:"item"`    // likewise
}

const testdata = "../../testdata"

// The digests of the example maps are the test vectors of docs/digest.md.
func TestVectors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testdata, "digest", "vectors.json")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var all []vector
	require.NoError(t, json.Unmarshal(b, &all))
	require.GreaterOrEqual(t, len(all), 3)
	for _, want := range all {
		got := vectorOf(t, want.Map, want.Prefix)
		if want.Records == nil {
			got.Records = nil
		}
		assert.Equal(t, want, got)
	}
}

func vectorOf(t *testing.T, file, prefix string) vector {
	f, err := os.Open(filepath.Join(testdata, filepath.FromSlash(file)))
	require.NoError(t, err)
	defer f.Close()
	m, err := fragment.ReadSnapshot(t.Context(), f, xtm.Options{Base: fragment.Ref(prefix)})
	require.NoError(t, err)
	v := vector{Map: file, Prefix: prefix}
	var changes []statedigest.Change
	add := func(kind statedigest.Kind, owner fragment.Ref, content []byte) {
		e := statedigest.EntryOf(kind, string(owner), content)
		changes = append(changes, statedigest.Change{Entry: e})
		v.Records = append(v.Records, record{map[statedigest.Kind]string{statedigest.Topic: "topic", statedigest.Association: "association"}[kind], string(owner), hex.EncodeToString(content), hex.EncodeToString(e.Item[:])})
	}
	for topic, err := range m.Topics() {
		require.NoError(t, err)
		add(statedigest.Topic, topic.TopicSI(), fragment.TopicContent(fragment.MarshalTopic(topic)))
	}
	for a, err := range m.Associations() {
		require.NoError(t, err)
		add(statedigest.Association, statedigest.Owner(a), fragment.AssociationContent(fragment.MarshalAssociation(a)))
	}
	tree := memory{}
	require.NoError(t, statedigest.Update(tree, changes))
	root, err := statedigest.Read(tree.Get, nil)
	require.NoError(t, err)
	v.Digest = root.Digest().String()
	return v
}

// memory is a tree in memory.
type memory map[string][]byte

func (m memory) Get(path []byte) ([]byte, error) { return m[string(path)], nil }
func (m memory) Delete(path []byte) error        { delete(m, string(path)); return nil }
func (m memory) Put(path, row []byte) error {
	m[string(path)] = row
	return nil
}
