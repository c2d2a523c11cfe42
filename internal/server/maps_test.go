package server_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// topicMap makes an XTM 1.0 document.
func topicMap(parts ...string) []byte {
	return []byte(`<?xml version="1.0"?>` + "\n" +
		`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">` + "\n" +
		strings.Join(parts, "\n") + "\n</topicMap>\n")
}

// topic makes a topic http://psi.example.org/{id}; more goes after its identity.
func topic(id, name string, more ...string) string {
	return identified(id, []string{"http://psi.example.org/" + id}, name, more...)
}

func identified(id string, identifiers []string, name string, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<topic id=%q><subjectIdentity>`, id)
	for _, si := range identifiers {
		fmt.Fprintf(&b, `<subjectIndicatorRef xlink:href=%q/>`, si)
	}
	b.WriteString(`</subjectIdentity>`)
	if name != "" {
		fmt.Fprintf(&b, `<baseName><baseNameString>%s</baseNameString></baseName>`, name)
	}
	return b.String() + strings.Join(more, "") + `</topic>`
}

func note(typ, text string) string {
	return fmt.Sprintf(`<occurrence><instanceOf><topicRef xlink:href="#%s"/></instanceOf><resourceData>%s</resourceData></occurrence>`, typ, text)
}

// association makes one of topics that play roles of their own names.
func association(typ string, players ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<association><instanceOf><topicRef xlink:href="#%s"/></instanceOf>`, typ)
	for i, p := range players {
		fmt.Fprintf(&b, `<member><roleSpec><topicRef xlink:href="#role-%d"/></roleSpec><topicRef xlink:href="#%s"/></member>`, i+1, p)
	}
	return b.String() + `</association>`
}

// small is a map of nine topics: Oslo and Bergen are cities of Norway. Pairs of
// old and new names rename topics; a new name "" takes the name away.
func small(renames ...string) []byte {
	name := func(s string) string {
		for i := 0; i < len(renames); i += 2 {
			if renames[i] == s {
				return renames[i+1]
			}
		}
		return s
	}
	return topicMap(
		topic("city", name("City")), topic("note", name("Note")), topic("part-of", name("part of")),
		topic("role-1", name("part")), topic("role-2", name("whole")),
		topic("norway", name("Norway")),
		topic("oslo", name("Oslo"), note("note", "the capital")),
		topic("bergen", name("Bergen")),
		topic("tromsø", name("Tromsø")),
		association("part-of", "oslo", "norway"), association("part-of", "bergen", "norway"),
	)
}

// expected returns the content, as CXTM, that a collection must have after a
// document was published there: what the document says and the subject
// identifiers that the server assigns.
func (n *node) expected(name string, doc []byte) string {
	n.t.Helper()
	sp := n.sp(name)
	tm, err := xtm.Read(n.t.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(sp), DropClashes: true})
	require.NoError(n.t, err)
	named, err := fragment.NameTopics(n.t.Context(), tm, sp, nil)
	require.NoError(n.t, err)
	var b bytes.Buffer
	require.NoError(n.t, cxtm.Write(&b, named.TopicMap(), cxtm.Options{Base: tmdm.Locator(sp), OmitItemIdentifiers: true}))
	return b.String()
}

// current returns the content of a collection now.
func (n *node) current(name string) string {
	n.t.Helper()
	return canonical(n.t, n.mustGet("/topicmaps/"+name+"/snapshots/current.xtm21").body, n.sp(name))
}
