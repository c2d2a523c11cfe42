package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// versions are the versions of a map that are published one after the other,
// round and round. They lie in files, so that every process has the same.
type versions struct {
	maps []*fragment.Map
	said [][]Entry // said[0] by creating the first; said[i], said[len] by publishing the i-th after the one before
}

// bulk is how many topics every third version has more: publishing them
// outgrows a transaction of the small databases of crash tests.
const bulk = 120

// writeVersions makes n versions by random edits.
func writeVersions(t *testing.T, folder string, n int, seed uint64) {
	editor := storetest.NewEditor(t, seed)
	var prior merge.Memory
	for i := range n {
		next := editor.Version(&prior)
		if i%3 == 2 {
			for k := range bulk {
				topic := next.TopicMap().CreateTopicBySubjectIdentifier(ref(k))
				topic.AddName(fmt.Sprintf("bulk of version %d", i), nil)
			}
		}
		state, err := fragment.NameTopics(t.Context(), next.TopicMap(), sp, &prior)
		require.NoError(t, err)
		prior = merge.Memory{}
		require.NoError(t, prior.Load(state))
		var doc bytes.Buffer
		require.NoError(t, fragment.WriteSnapshot(&doc, &prior, fragment.Form{Version: xtm.V21, SP: sp}))
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d.xtm", i)), doc.Bytes(), 0o600))
	}
}

func readVersions(folder string) (*versions, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.xtm"))
	if err != nil || len(files) < 2 {
		return nil, fmt.Errorf("%d versions in %s, %v", len(files), folder, err)
	}
	h := &versions{}
	for _, name := range files {
		doc, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := fragment.ReadSnapshot(context.Background(), bytes.NewReader(doc), xtm.Options{Base: sp})
		if err != nil {
			return nil, err
		}
		h.maps = append(h.maps, m)
	}
	var prior fragment.Source = &merge.Memory{}
	for i := range len(h.maps) + 1 {
		next := h.maps[i%len(h.maps)]
		change, err := fragment.Diff(context.Background(), prior, next)
		if err != nil {
			return nil, err
		}
		var said []Entry
		for _, e := range change.Entries {
			entry := Entry{TopicSI: e.TopicSI, Title: e.Title, Deleted: e.Deleted}
			if e.Topic != e.TopicSI {
				entry.Topic = e.Topic
			}
			said = append(said, entry)
		}
		if len(said) == 0 {
			return nil, fmt.Errorf("version %d changes nothing", i)
		}
		h.said, prior = append(h.said, said), next
	}
	return h, nil
}

// after returns the number of versions published when the head of the log is at
// a sequence, and what the log says until then. A head that no number of
// versions leads to is an error.
func (h *versions) after(head uint64) (published int, log []Entry, err error) {
	for i := 0; ; i++ {
		if uint64(len(log)) == head {
			return i, log, nil
		}
		if uint64(len(log)) > head {
			return 0, nil, fmt.Errorf("the head %d is between two versions", head)
		}
		at := i
		if i > len(h.maps) {
			at = (i-1)%len(h.maps) + 1
		}
		log = append(log, h.said[at]...)
	}
}

// version returns the map when a number of versions are published.
func (h *versions) version(published int) *fragment.Map { return h.maps[(published-1)%len(h.maps)] }

// fragments returns the fragments of entries of a view, from a sequence on.
func fragments(v *View, from uint64) ([]*fragment.Fragment, error) {
	var list []*fragment.Fragment
	for e, err := range v.Entries(from) {
		if err != nil {
			return nil, err
		}
		var doc bytes.Buffer
		if e.Stored {
			data, err := v.StoredFragment(&e, xtm.V21)
			if err != nil {
				return nil, err
			}
			if err := gunzip(&doc, data); err != nil {
				return nil, err
			}
		} else if err := v.RenderFragment(&doc, &e, xtm.V21); err != nil {
			return nil, err
		}
		f, err := fragment.Read(context.Background(), &doc, xtm.Options{Base: tmdm.Locator(v.SP)}, e.TopicSI)
		if err != nil {
			return nil, err
		}
		f.Deleted = e.Deleted
		list = append(list, f)
	}
	return list, nil
}
