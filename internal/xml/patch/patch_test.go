package patch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// leads makes the patch from one document to another, and checks that it leads there: byte for
// byte by Apply, and as a tree.
func leads(t require.TestingT, before, after string) string {
	patch, err := Make([]byte(before), []byte(after))
	require.NoError(t, err, "from %s\nto %s", before, after)
	got, err := Apply([]byte(before), patch)
	require.NoError(t, err, "from %s\nto %s\nby %s", before, after, patch)
	require.Equal(t, after, string(got), "from %s\nby %s", before, patch)
	require.Equal(t, parseTree(t, after).String(), applyTree(t, before, string(patch)).String(), "from %s\nto %s\nby %s", before, after, patch)
	again, err := Make([]byte(before), []byte(after))
	require.NoError(t, err)
	require.Equal(t, string(patch), string(again))
	return string(patch)
}

// The form of patches is that of RFC 7351 §2.1, Patch Example.
func TestPatch(t *testing.T) {
	t.Parallel()
	before := "<?xml version=\"1.0\"?>\n<m xmlns='urn:m' xmlns:p=\"urn:x\">\n<a/>\n<b p:c='1'/>\n<c/>\n<k/></m>\n"
	after := "<?xml version=\"1.0\"?>\n<m xmlns='urn:m' xmlns:p=\"urn:x\">\n<new>1</new>\n<a/>\n<b>2</b>\n<k/><d p:d=''/></m>\n"
	assert.Equal(t, `<p1:patch xmlns:p1="urn:ietf:rfc:7351" xmlns='urn:m' xmlns:p="urn:x">
<p1:add sel="/*"><d p:d=''/></p1:add>
<p1:remove sel="/*/*[3]" ws="after"/>
<p1:replace sel="/*/*[2]"><b>2</b></p1:replace>
<p1:add sel="/*/*[1]" pos="before"><new>1</new>
</p1:add>
</p1:patch>
`, leads(t, before, after))
	assert.Equal(t, "<p:patch xmlns:p=\"urn:ietf:rfc:7351\">\n</p:patch>\n", leads(t, "<a>x</a>", "<a>x</a>"))
}

func TestPatchesLeadToTheNewDocument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", worthALook)
	documents := []string{
		"<m></m>", "<m><a/></m>", "<m><a/><b/></m>", "<m><b/><a/></m>", "<m><a/><a/><a/></m>", "<m><a/><a/></m>", "<m><c/><a/><d/><b/><e/></m>",
		"<m><a>\n</a></m>", "<m><a><b/></a><c/></m>", "<m><a><!-- </a> --></a></m>", "<m><a x='>'><![CDATA[</a>]]></a><?p <a>?></m>",
		"<m><x>" + long + "</x><y/></m>", "<m><x><a>" + long + "</a><b/></x><y/></m>", "<m><x><b/><a>" + long + "</a><c/></x></m>",
		"<m><x><a>" + long + "</a><b/>text</x><y/></m>", "<m><x y='1'><a>" + long + "</a><b/></x><y/></m>",
		"<m><x><a><d/><e>" + long + "</e></a><b/></x><y/></m>", "<m><x><a><e>" + long + "</e>\n<d/></a><b/></x><y/></m>",
		"<m><x xmlns='urn:x'><a>" + long + "</a><b/></x><y/></m>", "<m><x xmlns='urn:x'><a>" + long + "</a><c/></x><y/></m>",
	}
	none := 0
	for _, a := range documents {
		for _, b := range documents {
			if _, err := Make([]byte(a), []byte(b)); err != nil {
				assert.ErrorIs(t, err, ErrNone)
				assert.True(t, strings.Contains(a+b, "<?p") || strings.Contains(a+b, "<m></m>") || a != b, "%s\n%s", a, b)
				none++
				continue
			}
			leads(t, a, b)
		}
	}
	assert.Equal(t, 2*(len(documents)-1), none, "that with a processing instruction has none")
	patch := leads(t, "<m>\n<x>\n<a>"+long+"</a>\n</x>\n</m>", "<m>\n<x>\n<a>"+long+"</a>\n<b/>\n</x>\n</m>")
	assert.Contains(t, patch, `<p:add sel="/*/*[1]"><b/>`+"\n</p:add>", "into the element, as little is new")
}

func TestDocumentsWithoutPatches(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"<m a='1'/>", "<m a='2'/>"}, {"<m>a</m>", "<m>b</m>"}, {"<m><a/> </m>", "<m><a/>x</m>"}, {"<m> <a/></m>", "<m><a/></m>"},
		{"<!-- 1 --><m/>", "<!-- 2 --><m/>"}, {"<m/>\n", "<m/>"}, {"<m/>", "<m></m>"}, {"<m/>", "<n/>"},
	} {
		_, err := Make([]byte(c[0]), []byte(c[1]))
		assert.ErrorIs(t, err, ErrNone, "%s", c)
	}
	const encoded = `<?xml version="1.0" encoding="iso-8859-1"?><m/>`
	for _, c := range []string{"", "<", "<m", "<m>", "<m></m", "text", "<m a='>", "<m><!-- </m>", "<!DOCTYPE m><m/>", "<m><!ELEMENT></m>",
		encoded, "<!-- ", "<?x", "<m><a></m>"} {
		_, err := Make([]byte(c), []byte("<m/>"))
		assert.Error(t, err, "%s", c)
		_, err = Make([]byte("<m/>"), []byte(c))
		assert.Error(t, err, "%s", c)
		_, err = Apply([]byte(c), []byte(`<p:patch xmlns:p="urn:ietf:rfc:7351"><p:add sel="/*"/></p:patch>`))
		assert.Error(t, err, "%s", c)
	}
	_, err := Make([]byte(encoded), []byte(encoded))
	assert.ErrorContains(t, err, "another encoding")
}

// A patch that is not known, or does not fit, is refused.
func TestPatchesThatAreRefused(t *testing.T) {
	t.Parallel()
	const before = "<m xmlns='urn:m'><a>\n<b/></a> <c/><d>text</d><e xmlns='urn:e'><f/></e></m>"
	apply := func(operations string) (string, error) {
		got, err := Apply([]byte(before), []byte(`<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="urn:m">`+operations+`</p:patch>`))
		return string(got), err
	}
	got, err := apply("\n<p:add sel='/*/*[1]'><x/></p:add> <p:add sel='/*/*[2]' pos='before'></p:add><p:remove ws='after' sel='/*/*[1]'/>")
	require.NoError(t, err)
	require.Equal(t, "<m xmlns='urn:m'><c/><d>text</d><e xmlns='urn:e'><f/></e></m>", got)
	for _, bad := range []string{
		`<p:add sel="/*/*[5]" pos="before"><x/></p:add>`, `<p:add sel="/*/*[0]" pos="before"/>`, `<p:add sel="/*/*[-1]" pos="before"/>`,
		`<p:add sel="/*" pos="before"><x/></p:add>`, `<p:add sel="/*" pos="prepend"><x/></p:add>`, `<p:add sel="/*" type="@x">1</p:add>`,
		`<p:add sel="*"><x/></p:add>`, `<p:add sel="/m"><x/></p:add>`, `<p:add sel="/*/a"><x/></p:add>`, `<p:add sel=""><x/></p:add>`, `<p:add><x/></p:add>`,
		`<p:add sel="/*/*[99999999999999999999]"><x/></p:add>`, `<p:add sel="/*/*[1]/*[1]/*[1]/*[1]/*[1]/*[1]/*[1]/*[1]"><x/></p:add>`,
		`<p:add sel="/*/*[2]"><x/></p:add>`, `<p:add sel="/*/*[3]"><x/></p:add>`, `<p:add sel="/*/*[4]"><x/></p:add>`, `<p:remove sel="/*/*[4]/*[1]"/>`,
		`<p:add sel="/*"> <x/></p:add>`, `<p:add sel="/*">text</p:add>`, `<p:add sel="/*"><x/><!-- --></p:add>`, `<p:add sel="/*"><x></p:add>`, `<p:add sel="/*"><x></y></p:add>`,
		`<p:add sel="/*"><z:x/></p:add>`, `<p:add sel="/*"><x/></p:replace>`,
		`<p:remove sel="/*"/>`, `<p:remove sel="/*/*[1]"/>`, `<p:remove sel="/*/*[2]" ws="after"/>`, `<p:remove sel="/*/*[1]" ws="both"/>`,
		`<p:remove sel="/*/*[2]"><x/></p:remove>`, `<p:replace sel="/*"><m/></p:replace>`, `<p:replace sel="/*/*[1]"/>`, `<p:replace sel="/*/*[1]"><x/><y/></p:replace>`,
		`<p:replace sel="/*/*[1]"><x/> </p:replace>`, `<p:replace sel="/*/*[1]" ws="after"><x/></p:replace>`, `<p:move sel="/*/*[1]"/>`, `<add sel="/*"><x/></add>`, `text`, `<p:add sel=/*/>`, `<p:remove sel="/*/*[2]" sel="/*/*[2]"/>`,
	} {
		got, err := apply(bad)
		assert.Error(t, err, "%s: %s", bad, got)
	}
	for _, bad := range []string{
		``, `<patch/>`, `<p:patch xmlns:p="urn:ietf:rfc:7351"></p:patch>`, `<p:patch xmlns:p="urn:other" xmlns="urn:m"></p:patch>`, `<p:diff xmlns:p="urn:ietf:rfc:7351" xmlns="urn:m"></p:diff>`,
		`<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="urn:n"></p:patch>`, `<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="urn:m" x="1"></p:patch>`,
		`<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="urn:m" xmlns:y="urn:y"></p:patch>`, `<!DOCTYPE x [<!ENTITY a "b">]><p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="urn:m"></p:patch>`,
		`<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="urn:m"></p:patch><x/>`,
	} {
		_, err := Apply([]byte(before), []byte(bad))
		assert.Error(t, err, "%s", bad)
	}
}

// Patches that would cost much are refused before they do.
func TestPatchesThatCostMuch(t *testing.T) {
	t.Parallel()
	many := "<m>" + strings.Repeat("<a/>", 200_000) + "</m>"
	patch := func(operations int) []byte {
		return []byte(`<p:patch xmlns:p="urn:ietf:rfc:7351">` + strings.Repeat(`<p:add sel="/*/*[1]" pos="before"><b/></p:add>`, operations) + `</p:patch>`)
	}
	_, err := Apply([]byte(many), patch(100))
	require.NoError(t, err)
	_, err = Apply([]byte(many), patch(1000))
	require.ErrorContains(t, err, "costs too much")
	_, err = Apply([]byte("<m><a/></m>"), patch(maxOperations))
	require.NoError(t, err)
	_, err = Apply([]byte("<m><a/></m>"), patch(maxOperations+1))
	require.ErrorContains(t, err, "more than 10000 operations")
	var a, b strings.Builder
	for i := range maxOperations + 1 {
		fmt.Fprintf(&a, "<a>%d</a>", i)
		fmt.Fprintf(&b, "<a>%d</a>", -i-1)
	}
	_, err = Make([]byte("<m>"+a.String()+"</m>"), []byte("<m>"+b.String()+"</m>"))
	require.ErrorIs(t, err, ErrNone)
}

// An element that is added to many is found by little more than itself.
func TestPatchesAreSmall(t *testing.T) {
	t.Parallel()
	for _, version := range []xtm.Version{xtm.V10, xtm.V21} {
		before, after := hub(t, version, 3000, -1), hub(t, version, 3000, 1500)
		patch := leads(t, before, after)
		require.Greater(t, len(before), 200<<10)
		assert.Less(t, len(patch), 800, "%s", patch)
		assert.Less(t, len(leads(t, after, before)), 400)
	}
}

// hub is the fragment of a topic with n occurrences, one of which may be special.
func hub(t testing.TB, version xtm.Version, n, special int) string {
	tm := tmdm.New()
	topic := tm.CreateTopicBySubjectIdentifier("http://psi.example.org/hub")
	typ := tm.CreateTopicBySubjectIdentifier("http://psi.example.org/note")
	for i := range n {
		topic.AddOccurrence(fmt.Sprintf("What there is to be said for the %dth time.", i), tmdm.XSDString, typ)
		if i == special {
			topic.AddOccurrence("What there is to be said for the 1500th time, and more", tmdm.XSDString, typ)
		}
	}
	return fragmentOf(t, tm, "http://psi.example.org/hub", version)
}

const sp = "http://example.org/maps/"

func fragmentOf(t require.TestingT, tm *tmdm.TopicMap, si fragment.Ref, version xtm.Version) string {
	m, err := fragment.NewMap(tm, sp)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, fragment.Write(&b, m, si, fragment.Form{Version: version, SP: sp}))
	return b.String()
}

// fragments returns the fragments of a topic of a map that is edited again and again.
func fragments(t require.TestingT, seed uint64, edits int, version xtm.Version) (all []string) {
	tm := tmdm.New()
	for i := range 4 {
		tm.CreateTopicBySubjectIdentifier(tmdm.Locator(fmt.Sprint("http://psi.example.org/", i))).AddName(fmt.Sprint("Topic ", i), nil)
	}
	tm.Normalize(context.Background())
	e := testedit.New(tm, sp, seed)
	for range edits {
		e.Edit()
		if tm.TopicBySubjectIdentifier("http://psi.example.org/0") == nil {
			return all
		}
		m, err := fragment.NameTopics(context.Background(), tm, sp, nil)
		require.NoError(t, err)
		topic, err := m.Topic("http://psi.example.org/0")
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, fragment.Write(&b, m, topic.TopicSI(), fragment.Form{Version: version, SP: sp}))
		all = append(all, b.String())
	}
	return all
}

// Whatever is done to a map: patches lead from each fragment of a topic to the next.
func TestPatchesOfFragments(t *testing.T) {
	t.Parallel()
	made := 0
	testenv.Check(t, 50, 300, func(t *rapid.T) {
		version := rapid.SampledFrom([]xtm.Version{xtm.V10, xtm.V21}).Draw(t, "version")
		all := fragments(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 60).Draw(t, "edits"), version)
		for i := 1; i < len(all); i++ {
			if all[i-1] != all[i] {
				leads(t, all[i-1], all[i])
				made++
			}
		}
	})
	require.Greater(t, made, 30)
}

// Another program finds that the trees are the same.
func TestPatchedTreesByXMLLint(t *testing.T) {
	t.Parallel()
	testenv.Command(t, "xmllint")
	dir := t.TempDir()
	canonical := func(document string) string {
		file := filepath.Join(dir, "document.xml")
		require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
		out, err := exec.Command("xmllint", "--c14n", file).Output()
		require.NoError(t, err, "%s", document)
		return string(out)
	}
	for _, version := range []xtm.Version{xtm.V10, xtm.V21} {
		all := fragments(t, 7, 40, version)
		require.Greater(t, len(all), 10)
		for i := 1; i < len(all); i++ {
			patch, err := Make([]byte(all[i-1]), []byte(all[i]))
			require.NoError(t, err)
			require.Equal(t, canonical(all[i]), canonical(applyTree(t, all[i-1], string(patch)).XML()))
		}
	}
}
