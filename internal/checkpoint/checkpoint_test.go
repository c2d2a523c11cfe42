package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// log is a tree in memory.
type log struct {
	hashes []tlog.Hash
	size   int64
}

func (l *log) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var all []tlog.Hash
	for _, i := range indexes {
		all = append(all, l.hashes[i])
	}
	return all, nil
}

// grown returns the checkpoint of a log after some entries.
func (l *log) grown(t *testing.T, leaves ...string) *Checkpoint {
	for _, leaf := range leaves {
		hashes, err := tlog.StoredHashes(l.size, []byte(leaf), l)
		require.NoError(t, err)
		l.hashes = append(l.hashes, hashes...)
		l.size++
	}
	root, err := tlog.TreeHash(l.size, l)
	require.NoError(t, err)
	return &Checkpoint{Origin: "http://example.org/", Size: l.size, Root: root, Digest: strings.Join(leaves, "")}
}

func (l *log) proof(t *testing.T, from, to *Checkpoint) tlog.TreeProof {
	p, err := tlog.ProveTree(to.Size, from.Size, l)
	require.NoError(t, err)
	return p
}

// A log follows each of its earlier checkpoints, and no checkpoint of another log.
func TestFollows(t *testing.T) {
	var honest, forked log
	none := honest.grown(t)
	three := honest.grown(t, "a", "b", "c")
	five := honest.grown(t, "d", "e")
	forked.grown(t, "a", "b")
	forkedThree := forked.grown(t, "X")
	forkedFive := forked.grown(t, "d", "e")

	require.NoError(t, five.Follows(three, honest.proof(t, three, five)))
	require.NoError(t, five.Follows(none, nil))
	require.NoError(t, three.Follows(three, nil))
	other := *five
	other.Origin = "http://example.com/"
	twice := *three
	twice.Digest = "another"
	for name, row := range map[string]struct {
		now, earlier *Checkpoint
		proof        tlog.TreeProof
		why          string
	}{
		"shorter":          {three, five, nil, "the log has 3 entries, and had 5"},
		"as long":          {forkedThree, three, nil, "two logs of 3 entries are signed"},
		"longer":           {forkedFive, three, forked.proof(t, forkedThree, forkedFive), "does not have the 3 entries that it had"},
		"without a proof":  {five, three, nil, "nothing proves that the log still has the 3 entries that it had"},
		"other collection": {&other, three, honest.proof(t, three, five), "of another collection"},
		"two states":       {&twice, three, nil, "two states are signed for the same entries"},
	} {
		err := row.now.Follows(row.earlier, row.proof)
		var fork *ForkError
		require.ErrorAs(t, err, &fork, name)
		assert.ErrorContains(t, err, row.why, name)
	}
}

func newKey(t *testing.T) *Key {
	k, err := GenerateKey(filepath.Join(t.TempDir(), "key"), "maps.example.org")
	require.NoError(t, err)
	return k
}

// A signed note is opened with the public key of its signer, and with no other.
func TestSignAndOpen(t *testing.T) {
	k, other := newKey(t), newKey(t)
	c := new(log).grown(t, "a")
	signed, err := c.Sign(k)
	require.NoError(t, err)
	for _, text := range []string{signed, "\n " + signed + "\n\n", strings.TrimSpace(signed)} {
		got, err := Open(text, k.Public)
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	_, err = Open(signed, other.Public)
	require.ErrorContains(t, err, "it is signed by maps.example.org+")
	_, err = Open(strings.Replace(signed, "\n1\n", "\n2\n", 1), k.Public)
	require.ErrorContains(t, err, "invalid signature")
	_, err = Open(signed, "nonsense")
	require.ErrorContains(t, err, "is no public key")
	for _, text := range []string{"", "nonsense", "\x00", "a\n\n— x y"} {
		_, err = Open(text, k.Public)
		require.ErrorContains(t, err, "malformed note", "%q", text)
	}
	require.Error(t, CheckPublic("nonsense"))
	require.NoError(t, CheckPublic(k.Public))
}

// A signed text that is no checkpoint is refused; further lines are for later versions.
func TestNotesThatAreNoCheckpoints(t *testing.T) {
	k := newKey(t)
	open := func(text string) (*Checkpoint, error) {
		signed, err := note.Sign(&note.Note{Text: text}, k.signer)
		require.NoError(t, err)
		return Open(string(signed), k.Public)
	}
	root := tlog.Hash{}.String()
	c, err := open("o\n7\n" + root + "\ndigest 1:00\nlater 5\n")
	require.NoError(t, err)
	require.Equal(t, &Checkpoint{Origin: "o", Size: 7, Digest: "1:00"}, c)
	for text, why := range map[string]string{
		"o\n7\n":                             "less than four lines",
		"o\n-7\n" + root + "\ndigest 1:00\n": "no number of entries",
		"o\n07\n" + root + "\ndigest 1:00\n": "no number of entries",
		"o\n7\nAAAA\ndigest 1:00\n":          "no hash",
		"o\n7\n" + root + "\nelse\n":         "no state digest",
	} {
		_, err := open(text)
		require.ErrorContains(t, err, why, "%q", text)
	}
}

// A key file is private, is never overwritten, and any other file is refused.
func TestKeyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	k, err := GenerateKey(path, "maps.example.org")
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again, err := ReadKey(path)
	require.NoError(t, err)
	require.Equal(t, k.Public, again.Public)
	_, err = GenerateKey(path, "maps.example.org")
	require.ErrorContains(t, err, "is there already")
	for _, name := range []string{"", "two words", "a+b", " a", "a\n"} {
		_, err = GenerateKey(path+"2", name)
		require.ErrorContains(t, err, "cannot be the name of a key", "%q", name)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	private, public, _ := strings.Cut(string(text), "\n")
	for _, bad := range []string{"", private, public, public + private, private + "\n" + newKey(t).Public, strings.Repeat("x", maxKeyFile+1)} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err := ReadKey(path)
		require.ErrorContains(t, err, `"tmshare-server key generate" makes one`, "%q", bad)
		require.NotContains(t, err.Error(), "PRIVATE", "the private key is in no message")
	}
	_, err = ReadKey(path + "3")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The bytes of a leaf are those of docs/checkpoints.md.
func TestLeaf(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 5, 7, 120_000_000, time.FixedZone("", 3600))
	require.Equal(t, "2026-03-01T08:05:07.120000Z\nlive\nhttp://example.org/a\n1:00\n", string(Leaf(at, "http://example.org/a", true, false, "1:00")))
	require.Equal(t, "2026-03-01T08:05:07.120000Z\ncovered\nhttp://example.org/a\n1:00\n", string(Leaf(at, "http://example.org/a", true, true, "1:00")))
	require.Equal(t, "2026-03-01T08:05:07.120000Z\ndeleted\nhttp://example.org/a\n\n", string(Leaf(at, "http://example.org/a", false, false, "")))
}
