package resources_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/xml/patch"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// saying returns a topic with n occurrences, the last of them given.
func saying(si fragment.Ref, occurrences int, last string) *fragment.Topic {
	t := named(si, "hub")
	for i := range occurrences {
		t.Occurrences = append(t.Occurrences, fragment.Occurrence{Value: fmt.Sprintf("What there is to say, number %d", i), Datatype: tmdm.XSDString, Type: ref(1)})
	}
	t.Occurrences = append(t.Occurrences, fragment.Occurrence{Value: last, Datatype: tmdm.XSDString, Type: ref(1)})
	t.Canonical()
	return t
}

func (p *process) say(topics ...*fragment.Topic) *store.Collection {
	p.t.Helper()
	c := &fragment.Change{PutTopics: topics, Updated: len(topics)}
	for _, topic := range topics {
		c.Entries = append(c.Entries, fragment.Entry{TopicSI: topic.TopicSI(), Topic: topic.TopicSI()})
	}
	return p.change(c)
}

func (p *process) recordOf(v *store.View, e *store.Entry, form int) []byte {
	p.t.Helper()
	var b bytes.Buffer
	require.NoError(p.t, v.WriteRecord(&b, e, store.Forms[form]))
	return b.Bytes()
}

func (p *process) formOf(v *store.View, e *store.Entry) *resources.RecordForm {
	p.t.Helper()
	recorded, err := resources.RecordFormOf(v, e)
	require.NoError(p.t, err)
	return recorded
}

// patched returns the last entry of a topic, and the metadata of its record form in lists. It checks that its patches
// have their stated metadata, and lead from the record before to its own.
func (p *process) patched(si fragment.Ref) (last *store.Entry, recorded *resources.RecordForm) {
	t := p.t
	t.Helper()
	require.NoError(t, p.Note(t.Context(), "m"))
	p.view(func(v *store.View, _ *resources.Site) {
		var err error
		last, err = v.LastOf(si)
		require.NoError(t, err)
		require.NotNil(t, last)
		recorded = p.formOf(v, last)
		require.True(t, recorded.Patches == nil || len(recorded.Patches) == len(store.Forms))
		for i, form := range store.Forms {
			if !last.Lives() {
				break
			}
			if len(recorded.Digests) > 0 {
				require.Equal(t, rendered.DigestOf(p.recordOf(v, last, i)), recorded.Digests[i])
			}
			if recorded.PatchIn(form) == nil {
				continue
			}
			changes, err := resources.Patch(v, last, form)
			require.NoError(t, err)
			require.Equal(t, recorded.Patches[i], rendered.DigestOf(changes))
			require.LessOrEqual(t, 2*int64(len(changes)), recorded.Digests[i].Length)
			prior, err := v.Entry(last.Prior)
			require.NoError(t, err)
			got, err := patch.Apply(p.recordOf(v, prior, i), changes)
			require.NoError(t, err)
			require.Equal(t, string(p.recordOf(v, last, i)), string(got))
		}
	})
	return last, recorded
}

func (p *process) patches(si fragment.Ref) []rendered.Digest {
	p.t.Helper()
	_, recorded := p.patched(si)
	return recorded.Patches
}

// noted returns the entries with noted metadata.
func (p *process) noted() (all []uint64) {
	p.t.Helper()
	p.view(func(v *store.View, _ *resources.Site) {
		table := append(v.Extension("resourcesync"), 'j')
		for r, err := range v.Tx().Scan(table, nil) {
			require.NoError(p.t, err)
			all = append(all, binary.BigEndian.Uint64(r.Key[len(table):]))
		}
	})
	return all
}

// publishing is a process that publishes a large topic and small ones.
func publishing(t testing.TB, topics ...*fragment.Topic) (*process, *store.Collection) {
	t.Helper()
	p := newProcess(t, memory.New())
	return p, p.create(store.Settings{DocumentSize: 1}, append(topics, named(ref(1), "first"), named(ref(2), "first"), named(tmdm.PSIDefaultNameType, "name"))...)
}

// offered is a publishing with lists.
func offered(t *testing.T) *process {
	t.Helper()
	p, c := publishing(t, saying(ref(10), 100, "first"))
	p.cut(c.Head, c.Updated, resources.Cut{})
	return p
}

// An entry has patches where little of much has changed, in both forms.
func TestPatches(t *testing.T) {
	p := offered(t)
	require.Empty(t, p.patches(ref(10)), "nothing was before")

	p.say(saying(ref(10), 100, "second"), named(ref(2), "second"))
	require.Len(t, p.patches(ref(10)), 2)
	require.Empty(t, p.patches(ref(2)), "of a small topic")

	p.say(saying(ref(10), 5, "third"))
	require.Empty(t, p.patches(ref(10)), "too small by now")
	p.say(saying(ref(10), 100, "fourth"))
	require.Empty(t, p.patches(ref(10)), "most of it is new")
	p.say(saying(ref(10), 90, "fifth"))
	require.NotEmpty(t, p.patches(ref(10)))

	p.say(saying(ref(10), 90, strings.Repeat("large ", rendered.MaxSmall)))
	require.Empty(t, p.patches(ref(10)), "it is large")
	p.say(saying(ref(10), 90, "seventh"))
	require.Empty(t, p.patches(ref(10)), "the version before is large")

	// One form may be long enough while the other is not.
	var about *resources.RecordForm
	for n := 1; about == nil || about.Patches == nil; n++ {
		p.say(saying(ref(10), n, "a"))
		p.say(saying(ref(10), n, "b"))
		_, about = p.patched(ref(10))
	}
	const leastPatched = 4 << 10
	require.True(t, (about.Patches[0].Length == 0) != (about.Patches[1].Length == 0), "%v", about.Patches)
	require.GreaterOrEqual(t, max(about.Digests[0].Length, about.Digests[1].Length), int64(leastPatched))
	require.Less(t, min(about.Digests[0].Length, about.Digests[1].Length), int64(leastPatched))

	// Deleted and created again it is another resource.
	p.change(&fragment.Change{DeleteTopics: []fragment.Ref{ref(10)}, Entries: []fragment.Entry{{
		TopicSI: ref(10), Topic: ref(10), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(10)}},
	}}})
	require.Empty(t, p.patches(ref(10)))
	p.say(saying(ref(10), 100, "again"))
	require.Empty(t, p.patches(ref(10)))
}

// The metadata of record forms are noted of the entries that lists have, and of no others. They are the same if they
// are not noted, or cannot be read.
func TestRecordFormsAreNotedForLists(t *testing.T) {
	p, c := publishing(t, saying(ref(10), 100, "first"))
	p.say(saying(ref(10), 100, "second"))
	require.NotEmpty(t, p.patches(ref(10)))
	require.Empty(t, p.noted(), "there are no lists")
	p.cut(c.Head, c.Updated, resources.Cut{})
	many := make([]*fragment.Topic, 600)
	for i := range 4 { // more than one commit notes
		for k := range many {
			many[k] = named(ref(100+k), fmt.Sprint("version ", i))
		}
		p.say(append(many, saying(ref(10), 100, fmt.Sprint("version ", i)))...)
	}
	forms := func() (all []*resources.RecordForm) {
		p.view(func(v *store.View, _ *resources.Site) {
			for e, err := range v.Entries(c.Head + 1) {
				require.NoError(t, err)
				all = append(all, p.formOf(v, &e))
			}
		})
		return all
	}
	require.Empty(t, p.noted(), "only Note writes notes")
	unnoted := forms()
	require.NotEmpty(t, p.patches(ref(10)))
	require.Len(t, p.noted(), 4*601+1)
	require.Equal(t, unnoted, forms())
	require.NoError(t, p.Extend(t.Context(), "m", func(v *store.View) error { // damaged, and of another rendering
		row := func(seq uint64) []byte {
			return binary.BigEndian.AppendUint64(append(v.Extension("resourcesync"), 'j'), seq)
		}
		return errors.Join(v.Tx().Put(row(c.Head+1), []byte("x")), v.Tx().Put(row(c.Head+2), []byte(`{"Version":1000}`)))
	}))
	require.Equal(t, unnoted, forms())

	p.set(func(s *store.Settings) { require.NoError(t, resources.Offered.Set(s, json.RawMessage("false"))) })
	p.say(saying(ref(10), 100, "last"))
	require.NotEmpty(t, p.patches(ref(10)))
	require.Len(t, p.noted(), 4*601+1, "there are no lists any more")
	p.prune(1)
	require.NoError(t, p.Note(t.Context(), "m"))
	p.view(func(v *store.View, _ *resources.Site) {
		require.Greater(t, v.Horizon, c.Head+2000)
		for _, seq := range p.noted() {
			require.Greater(t, seq, v.Horizon, "it is forgotten with the entries")
		}
	})
}

// A consumer that has fallen behind the kept history starts afresh, at its beginning.
func TestNotesStartAfreshBehindWhatIsPruned(t *testing.T) {
	p := offered(t)
	for i := range 20 {
		p.say(saying(ref(10), 100, fmt.Sprint("unnoted ", i)))
	}
	p.prune(5)
	require.Empty(t, p.noted())
	require.NotEmpty(t, p.patches(ref(10)))
	p.view(func(v *store.View, _ *resources.Site) {
		var kept []uint64
		for e, err := range v.Entries(v.Horizon + 1) {
			require.NoError(t, err)
			kept = append(kept, e.Seq)
		}
		require.Less(t, len(kept), 20)
		require.Equal(t, kept, p.noted())
	})
}

// stopping is a store whose process is killed at a commit of an extension.
type stopping struct {
	*store.DB
	before, after int // it is killed before, or after so many commits
}

var errKilled = errors.New("killed")

func (s *stopping) Extend(ctx context.Context, name string, f func(*store.View) error) error {
	if s.before--; s.before < 0 {
		return errKilled
	}
	err := s.DB.Extend(ctx, name, f)
	if s.after--; s.after < 0 && err == nil {
		err = errKilled
	}
	return err
}

// A process that is killed between a commit and its notes, or at any commit of notes, loses nothing: the next one
// goes on where it was.
func TestAKillBetweenACommitAndItsNotesLosesNothing(t *testing.T) {
	engine := memory.New()
	p := newProcess(t, engine)
	c := p.create(store.Settings{DocumentSize: 100}, named(tmdm.PSIDefaultNameType, "name"), saying(ref(10), 100, "first"))
	p.cut(c.Head, c.Updated, resources.Cut{})
	want := 0
	for kill := range 6 {
		many := make([]*fragment.Topic, 1500) // two commits of notes
		for k := range many {
			many[k] = named(ref(100+k), fmt.Sprint("round ", kill))
		}
		p.say(append(many, saying(ref(10), 100, fmt.Sprint("round ", kill)))...)
		want += 1501
		s := &stopping{p.DB, kill / 2, 1000}
		if kill%2 == 1 {
			s.before, s.after = 1000, kill/2
		}
		err := (&resources.Folder{Store: s}).Note(t.Context(), "m")
		if kill < 4 {
			require.ErrorIs(t, err, errKilled, "at commit %d", kill)
		}
		p = newProcess(t, engine)
		require.NotEmpty(t, p.patches(ref(10)))
		require.Len(t, p.noted(), want)
	}
}

// Two processes that note at the same time write the same once.
func TestTwoProcessesNoteTheSame(t *testing.T) {
	engine := memory.New()
	a, b := newProcess(t, engine), newProcess(t, engine)
	c := a.create(store.Settings{DocumentSize: 100}, named(tmdm.PSIDefaultNameType, "name"), saying(ref(10), 100, "first"))
	a.cut(c.Head, c.Updated, resources.Cut{})
	for i := range 30 {
		a.say(saying(ref(10), 100, fmt.Sprint(i)))
		done := make(chan error)
		go func() { done <- b.Note(t.Context(), "m") }()
		require.NoError(t, errors.Join(a.Note(t.Context(), "m"), <-done))
		require.Len(t, a.noted(), i+1)
	}
}

// A patch is gone with the fragment that it leads from; entries published after that have none.
func TestPatchesOfPrunedHistory(t *testing.T) {
	p := offered(t)
	p.say(saying(ref(10), 100, "second"))
	p.say(named(ref(2), "second"), named(ref(1), "second"))
	e, recorded := p.patched(ref(10))
	require.NotEmpty(t, recorded.Patches)
	p.prune(3) // the entry stays, that before does not
	p.view(func(v *store.View, _ *resources.Site) {
		require.Equal(t, e.Seq-1, v.Horizon)
		_, err := resources.Patch(v, e, store.Forms[0])
		require.ErrorIs(t, err, store.ErrGone)
	})
	p.prune(1)
	p.view(func(v *store.View, _ *resources.Site) { require.GreaterOrEqual(t, v.Horizon, e.Seq) })
	p.say(saying(ref(10), 100, "third"))
	require.Empty(t, p.patches(ref(10)), "the version before is pruned")
	p.say(saying(ref(10), 100, "fourth"))
	require.NotEmpty(t, p.patches(ref(10)))
}

// A record that is published again as it was needs no patch, and the one after it leads from there.
func TestPatchesOfRestatedRecords(t *testing.T) {
	p := offered(t)
	p.say(saying(ref(10), 100, "second"))
	p.set(func(s *store.Settings) { s.RecordForms = store.Forms[1:] })
	restated, err := p.OfferRecordsAnew(t.Context(), "m")
	require.NoError(t, err)
	require.Positive(t, restated)
	e, recorded := p.patched(ref(10))
	require.Empty(t, recorded.Patches)
	require.NotZero(t, e.Prior)
	p.say(saying(ref(10), 100, "third"))
	require.NotEmpty(t, p.patches(ref(10)))
}

// rowsByTable returns all rows of a store, by their tables.
func (p *process) rowsByTable() map[byte]map[string]string {
	all := map[byte]map[string]string{}
	require.NoError(p.t, p.Dump(p.t.Context(), func(d *store.Dump) error {
		for r, err := range d.Rows() {
			if err != nil {
				return err
			}
			table := keys.Table(r.Key)
			if all[table] == nil {
				all[table] = map[string]string{}
			}
			all[table][string(r.Key)] = string(r.Value)
		}
		return nil
	}))
	return all
}

// A commit writes rows of the records and their indexes, of the log, and of the earlier versions: no row of a
// consumer. Here something is derived from the collection, and its changes are listed.
func TestACommitWritesNothingOfConsumers(t *testing.T) {
	p, c := publishing(t, saying(ref(10), 100, "first"))
	p.cut(c.Head, c.Updated, resources.Cut{})
	_, err := p.CreateCollection(t.Context(), store.Collection{Name: "all", SP: sp + "all/", DerivedFrom: []string{"m"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	p.say(saying(ref(10), 100, "second"))
	require.NotEmpty(t, p.patches(ref(10)))
	before := p.rowsByTable()
	require.NotEmpty(t, before[keys.TableExtension])
	require.NotEmpty(t, before[keys.TableInput])
	topic := saying(ref(10), 100, "third")
	topic.SubjectIdentifiers, topic.SubjectLocators = append(topic.SubjectIdentifiers, "http://example.org/zzz"), []fragment.Ref{"http://example.org/here"}
	link := &fragment.Association{Type: ref(1), Roles: []fragment.Role{{Type: ref(2), Player: ref(10)}}}
	link.Canonical()
	p.change(&fragment.Change{PutTopics: []*fragment.Topic{topic}, PutAssociations: []*fragment.Association{link}, Updated: 1, Entries: []fragment.Entry{{TopicSI: ref(10), Topic: ref(10)}}})
	after := p.rowsByTable()
	written := ""
	for table := byte(0); table < 128; table++ {
		for key, value := range after[table] {
			if was, there := before[table][key]; !there || was != value {
				written += string(rune(table))
				break
			}
		}
	}
	const ofRecords, ofLog, ofThePast = "ailnpt", "cek", "PX"
	require.ElementsMatch(t, strings.Split(ofRecords+ofLog+ofThePast, ""), strings.Split(written, ""))
}

// BenchmarkPublishWithPatches changes a topic of a thousand occurrences in a collection whose
// changes are listed, and in one whose are not.
//
//	go test ./internal/ext/resourcesync/resources -run xxx -bench PublishWithPatches
func BenchmarkPublishWithPatches(b *testing.B) {
	for _, lists := range []bool{false, true} {
		b.Run(fmt.Sprint("lists=", lists), func(b *testing.B) {
			p, c := publishing(b, saying(ref(10), 1000, "first"))
			if lists {
				p.cut(c.Head, c.Updated, resources.Cut{})
			}
			n := 0
			for b.Loop() {
				n++
				p.say(saying(ref(10), 1000, fmt.Sprint("version ", n)))
			}
		})
	}
}
