package feeds

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// What we write satisfies the RELAX NG schema of RFC 4287 Appendix B, and the
// Schematron rules for what that cannot say.
func TestEncodedDocumentsSatisfyTheSchemas(t *testing.T) {
	folder, xmllint := testenv.Shared(t, "schemas"), testenv.Command(t, "xmllint")
	lint := func(schema, file string) (string, error) {
		out, err := exec.Command(xmllint, "--noout", "--nonet", schema, filepath.Join(folder, map[string]string{
			"--relaxng": "atom.rng", "--schematron": "atom.sch",
		}[schema]), file).CombinedOutput()
		return string(out), err
	}

	feeds := map[string]*Feed{"archive": fragmentsFeed(), "large": largeFeed(200)}
	recent := fragmentsFeed()
	recent.Archive, recent.Links = false, append(recent.Links[2:], Link{Rel: "self", Href: "http://a/fragments"}, Link{Rel: "via", Href: "http://a/4"})
	feeds["recent"] = recent
	complete := fragmentsFeed()
	complete.Archive, complete.Complete, complete.Links = false, true, complete.Links[:1]
	feeds["complete"] = complete
	empty := fragmentsFeed()
	empty.Entries = nil
	feeds["empty"] = empty
	authored := fragmentsFeed()
	authored.Author, authored.Entries[0].Author = "", "a\x00b"
	feeds["authors-at-entries"] = authored
	maps := fragmentsFeed()
	maps.Archive, maps.ServerSrcLocatorPrefix = false, ""
	for i := range maps.Entries {
		maps.Entries[i].TopicSI, maps.Entries[i].State = nil, ""
		maps.Entries[i].Links = []Link{
			{Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
			{Rel: RelTopicMapFeed, Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
			{Rel: RelSDShareCollectionFeed, Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
			{Rel: RelCWACollectionFeed, Type: MediaTypeAtom, Href: "http://a/topicmaps/ö 1?x=<&>"},
		}
	}
	feeds["maps"] = maps

	documents := map[string]string{}
	for name, f := range feeds {
		documents[name] = encodeString(t, f)
	}
	var b bytes.Buffer
	require.NoError(t, fragmentsFeed().Entries[1].Encode(&b))
	documents["entry"] = b.String()

	for name, document := range documents {
		file := filepath.Join(t.TempDir(), name+".atom")
		require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
		for _, schema := range []string{"--relaxng", "--schematron"} {
			out, err := lint(schema, file)
			assert.NoError(t, err, "%s %s: %s", name, schema, out)
		}
	}

	// The check itself must be able to fail.
	bad := filepath.Join(t.TempDir(), "bad.atom")
	require.NoError(t, os.WriteFile(bad, []byte(inEntry(entryBasics)), 0o600))
	for _, schema := range []string{"--relaxng", "--schematron"} {
		_, err := lint(schema, bad)
		assert.Error(t, err, schema)
	}
}
