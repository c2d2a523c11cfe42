package feeds

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// recordsFeed is an archive document of Atom-PMH: a record that was modified, and one
// that was deleted.
func recordsFeed() *Feed {
	const base = "http://server.example/topicmaps/egov/"
	entry := func(id string, hour int) Entry {
		return Entry{
			ID: "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa" + id, Title: "Record", Updated: time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC),
			Links: []Link{
				{Rel: "alternate", Type: MediaTypeXTM1, Href: base + "topics/" + id + ".xtm1"},
				{Rel: "alternate", Type: MediaTypeXTM21, Href: base + "topics/" + id + ".xtm21"},
			},
		}
	}
	deleted := entry("6b", 12)
	deleted.Links, deleted.Content = nil, EmptyContent
	return &Feed{
		ID: "urn:uuid:60a76c80-d399-11d9-b93c-0003939e0af6", Title: "Records", Author: "Example Office",
		Updated: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Archive: true,
		Links: []Link{
			{Rel: "self", Type: MediaTypeAtom, Href: base + "records/archive/1"},
			{Rel: "current", Type: MediaTypeAtom, Href: base + "records"},
		},
		Entries: []Entry{deleted, entry("6a", 11), entry("6a", 10), entry("6b", 10)},
	}
}

// The kind of an entry follows from its content (Atom-PMH, Detecting entry type).
func TestKindsOfRecordEntries(t *testing.T) {
	const alternate = `<link href="http://a/1" type="text/plain"/>`
	for xml, want := range map[string]struct{ record, deletion bool }{
		alternate: {true, false},
		`<link rel="alternate" href="http://a/1"/><link rel="self" href="http://a/2"/>`:      {true, false},
		`<link rel="http://www.iana.org/assignments/relation/alternate" href="http://a/1"/>`: {true, false},
		`<content/>`:                                     {false, true},
		`<content></content>`:                            {false, true},
		`<content type="xhtml"/>`:                        {false, true},
		"<content>\n\t <!-- none -->\n</content>":        {false, true},
		`<content/><link rel="self" href="http://a/2"/>`: {false, true},
		``:                                     {false, false},
		`<link rel="self" href="http://a/2"/>`: {false, false},
		`<content src="http://a/1"/>`:          {false, false},
		`<content src=""/>`:                    {false, false},
		`<content>gone</content>`:              {false, false},
		`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"/></content>`: {false, false},
		alternate + `<content/>`:                  {false, false},
		alternate + `<content>text</content>`:     {false, false},
		alternate + `<content src="http://a/1"/>`: {false, false},
	} {
		f, err := decodeString(inEntry(entryBasics + xml))
		require.NoError(t, err, xml)
		require.Len(t, f.Entries, 1)
		assert.Equal(t, want.record, f.Entries[0].IsRecord(), xml)
		assert.Equal(t, want.deletion, f.Entries[0].IsDeletion(), xml)
	}
}

// A written entry is read as the same entry, and satisfies the rules for its kind.
func TestRecordEntriesAreWrittenAsTheirKind(t *testing.T) {
	f := recordsFeed()
	document := encodeString(t, f)
	assert.Equal(t, 1, bytes.Count([]byte(document), []byte("<content/>")), "in the deletion entry only")
	assert.Equal(t, 1, bytes.Count([]byte(document), []byte("<content")))
	got, err := decodeString(document)
	require.NoError(t, err)
	assert.Equal(t, f, got)
	for i := range got.Entries {
		assert.Equal(t, i == 0, got.Entries[i].IsDeletion())
		assert.Equal(t, i > 0, got.Entries[i].IsRecord())
	}
	deletion := &f.Entries[0]
	deletion.Links = f.Entries[1].Links
	assertInvalid(t, f.Encode(new(bytes.Buffer)), `entry 1 ("Record")/content`, "neither a record nor the deletion of one")
	deletion.Links, deletion.Content = nil, NoContent
	assertInvalid(t, f.Encode(new(bytes.Buffer)), `entry 1 ("Record")/link`, "alternate")
	deletion.Content = SomeContent
	assertInvalid(t, f.Encode(new(bytes.Buffer)), `entry 1 ("Record")/content`, "cannot be written")
}

// A feed whose entries come one by one is the same document, and ends where they do.
func TestEncodeWithWritesWhatEncodeWrites(t *testing.T) {
	broken := errors.New("broken")
	for _, f := range []*Feed{recordsFeed(), fragmentsFeed()} {
		one := func(last error) iter.Seq2[Entry, error] {
			return func(yield func(Entry, error) bool) {
				for _, e := range f.Entries {
					if !yield(e, nil) {
						return
					}
				}
				if last != nil {
					yield(Entry{}, last)
				}
			}
		}
		var b bytes.Buffer
		require.NoError(t, f.EncodeWith(&b, one(nil)))
		assert.Equal(t, encodeString(t, f), b.String())
		assert.ErrorIs(t, f.EncodeWith(new(bytes.Buffer), one(broken)), broken)

		f.Entries[1].Title = " "
		assertInvalid(t, f.EncodeWith(new(bytes.Buffer), one(broken)), `entry 2 (" ")/title`, "is missing")
		f.Entries[1].Title, f.ID = "x", "no IRI"
		b.Reset()
		assert.Error(t, f.EncodeWith(&b, one(nil)))
		assert.Empty(t, b.String(), "a feed that breaks a rule is not begun")
	}
	none := recordsFeed()
	var b bytes.Buffer
	require.NoError(t, none.EncodeWith(&b, func(func(Entry, error) bool) {}))
	got, err := decodeString(b.String())
	require.NoError(t, err)
	assert.Empty(t, got.Entries, "those of the feed are not written")
}

func TestRecordsSatisfyTheSchemas(t *testing.T) {
	folder, xmllint := testenv.Shared(t, "schemas"), testenv.Command(t, "xmllint")
	complete := recordsFeed()
	complete.Archive, complete.Complete, complete.Links, complete.Entries = false, true, complete.Links[:1], complete.Entries[1:2]
	empty := recordsFeed()
	empty.Entries = nil
	for name, f := range map[string]*Feed{"archive": recordsFeed(), "complete": complete, "empty": empty} {
		file := filepath.Join(t.TempDir(), name+".atom")
		require.NoError(t, os.WriteFile(file, []byte(encodeString(t, f)), 0o600))
		for schema, form := range map[string]string{"--relaxng": "atom.rng", "--schematron": "atom.sch"} {
			out, err := exec.Command(xmllint, "--noout", "--nonet", schema, filepath.Join(folder, form), file).CombinedOutput()
			assert.NoError(t, err, "%s: %s", name, out)
		}
	}
}
