package editing_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// pair edits a topic twice: by the form, and as a program does, which fetches the topic, changes it, and posts it.
type pair struct {
	t   *testing.T
	n   *served.Node
	b   *served.Browser
	rnd *rand.Rand
	si  string

	form  served.Form
	tm    *tmdm.TopicMap
	topic *tmdm.Topic
}

func (p *pair) named(si string) *tmdm.Topic {
	return p.tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si))
}

func (p *pair) pick(list ...string) string { return list[p.rnd.IntN(len(list))] }

// begin opens the form, and fetches the topic.
func (p *pair) begin(si string) {
	p.si = si
	p.form, _ = p.b.Open(served.TopicPath("form", si) + "/edit.html")
	tm, err := xtm.Read(p.t.Context(), bytes.NewReader(p.n.MustGet(served.TopicPath("posted", si)+".xtm21").Bytes), xtm.Options{Base: tmdm.Locator(p.n.SP("posted"))})
	require.NoError(p.t, err)
	p.tm, p.topic = tm, tm.TopicBySubjectIdentifier(tmdm.Locator(si))
	require.NotNil(p.t, p.topic)
}

// rows returns the beginnings of the names of the fields of rows that are there.
func (p *pair) rows(kind string) (all []string) {
	for i := 0; p.form.Fields.Has(fmt.Sprintf("%s-%d-is", kind, i)); i++ {
		if at := fmt.Sprintf("%s-%d-", kind, i); p.form.Fields.Get(at+"is") != "" {
			all = append(all, at)
		}
	}
	return all
}

func (p *pair) get(field string) string { return p.form.Fields.Get(field) }

// topics returns the identifiers of the topics that a field shows by their titles.
func (p *pair) topics(field string) string {
	known := map[string]string{}
	for _, line := range strings.Split(p.get(field+"-is"), "\r\n") {
		if si, title, ok := strings.Cut(line, " "); ok {
			known[title] = si
		}
	}
	all := strings.Split(p.get(field), "\r\n")
	for i := range all {
		all[i] = cmp.Or(known[all[i]], all[i])
	}
	return strings.Join(all, "\r\n")
}

// scope returns the identifiers of the themes that a row shows.
func (p *pair) scope(row string) string {
	all := p.topics(row + "scope")
	for i := 1; p.get(fmt.Sprint(row, "scope-", i)) != ""; i++ {
		all += "\r\n" + p.topics(fmt.Sprint(row, "scope-", i))
	}
	return all
}

func (p *pair) themes() (fields string, topics []*tmdm.Topic) {
	var some []string
	for _, theme := range []string{served.PSI + "de", served.PSI + "en", served.PSI + "new-theme-" + p.pick("1", "2")} {
		if p.rnd.IntN(4) == 0 {
			some, topics = append(some, theme), append(topics, p.named(theme))
		}
	}
	return strings.Join(some, "\n"), topics
}

func scoped(themes []*tmdm.Topic) string {
	var all []string
	for _, t := range themes {
		all = append(all, string(t.SubjectIdentifiers()[0]))
	}
	slices.Sort(all)
	return strings.Join(all, "\r\n")
}

func typeOf(t *tmdm.Topic) string {
	if si := t.SubjectIdentifiers()[0]; si != tmdm.PSIDefaultNameType {
		return string(si)
	}
	return ""
}

// nameOf returns the name that a row shows.
func (p *pair) nameOf(row string) *tmdm.TopicName {
	for _, n := range p.topic.Names() {
		if n.Value() == p.get(row+"value") && typeOf(n.Type()) == p.topics(row+"type") && scoped(n.Scope().Themes()) == p.scope(row) {
			return n
		}
	}
	require.Fail(p.t, "no such name", row)
	return nil
}

func (p *pair) occurrenceOf(row string) *tmdm.Occurrence {
	for _, o := range p.topic.Occurrences() {
		if o.Value() == p.get(row+"value") && typeOf(o.Type()) == p.topics(row+"type") && scoped(o.Scope().Themes()) == p.scope(row) &&
			cmp.Or(p.get(row+"datatype"), tmdm.XSDString) == o.Datatype() {
			return o
		}
	}
	require.Fail(p.t, "no such occurrence", row)
	return nil
}

// edit changes something at random; values that the same form has changed before are left alone.
func (p *pair) edit(step int) {
	fresh := fmt.Sprintf("value %d <&\">", step)
	switch p.rnd.IntN(8) {
	case 0: // a new name
		at := p.form.Row(p.t, "name", "value", "")
		scope, themes := p.themes()
		typ, kind := "", p.named(string(tmdm.PSIDefaultNameType))
		if p.rnd.IntN(2) == 0 {
			typ = served.PSI + "nickname"
			kind = p.named(typ)
		}
		p.form.Set(at+"value", fresh, at+"type", typ, at+"scope", scope)
		p.topic.AddName(fresh, kind, themes...)
	case 1: // a name becomes another one
		rows := p.rows("name")
		if len(rows) == 0 {
			return
		}
		at := rows[p.rnd.IntN(len(rows))]
		if p.form.Fields.Has(at + "remove") {
			return
		}
		old := p.nameOf(at)
		typ, themes := old.Type(), old.Scope().Themes()
		p.form.Set(at+"value", fresh)
		old.Remove()
		p.topic.AddName(fresh, typ, themes...)
	case 2: // a name goes
		if rows := p.rows("name"); len(rows) > 1 {
			at := rows[p.rnd.IntN(len(rows))]
			if !p.form.Fields.Has(at + "remove") {
				p.nameOf(at).Remove()
				p.form.Set(at+"remove", "on")
			}
		}
	case 3: // a new occurrence
		at := p.form.Row(p.t, "occurrence", "value", "")
		scope, themes := p.themes()
		value, datatype := fresh, ""
		if p.rnd.IntN(2) == 0 {
			value, datatype = fmt.Sprintf("http://x.example.org/%d?a=%%20b", step), tmdm.XSDAnyURI
		}
		p.form.Set(at+"value", value, at+"type", served.PSI+"note", at+"datatype", datatype, at+"scope", scope)
		if datatype != "" {
			locator, err := tmdm.ParseLocator(value)
			require.NoError(p.t, err)
			value = string(locator)
		}
		p.topic.AddOccurrence(value, cmp.Or(datatype, tmdm.XSDString), p.named(served.PSI+"note"), themes...)
	case 4: // an occurrence goes, or has another type
		rows := p.rows("occurrence")
		if len(rows) == 0 {
			return
		}
		at := rows[p.rnd.IntN(len(rows))]
		if p.form.Fields.Has(at+"remove") || p.topics(at+"type") != served.PSI+"note" {
			return
		}
		old := p.occurrenceOf(at)
		value, datatype, themes := old.Value(), old.Datatype(), old.Scope().Themes()
		old.Remove()
		if p.rnd.IntN(2) == 0 {
			p.form.Set(at+"remove", "on")
			return
		}
		p.form.Set(at+"type", served.PSI+"remark")
		p.topic.AddOccurrence(value, datatype, p.named(served.PSI+"remark"), themes...)
	case 5: // a new type
		at := p.form.Row(p.t, "type", "type", "")
		class := served.PSI + "class-" + p.pick("1", "2", "3")
		p.form.Set(at+"type", class)
		if !p.topic.IsInstanceOf(p.named(class)) {
			p.topic.AddType(p.named(class))
		}
	case 6: // a new association
		at := p.form.Row(p.t, "association", "type", "")
		scope, themes := p.themes()
		player := served.PSI + p.pick("bergen", "norway", "new-player")
		p.form.Set(at+"type", served.PSI+"near", at+"role", served.PSI+"role-1", at+"other-0-type", served.PSI+"role-2", at+"other-0-player", player, at+"scope", scope)
		a := p.tm.CreateAssociation(p.named(served.PSI+"near"), themes...)
		a.AddRole(p.named(served.PSI+"role-1"), p.topic)
		a.AddRole(p.named(served.PSI+"role-2"), p.named(player))
	case 7: // the only association goes
		if rows := p.rows("association"); len(rows) == 1 && p.get("association-1-type") == "" && !p.form.Fields.Has(rows[0]+"remove") {
			for a := range p.tm.Associations() {
				if a.Type() != p.tm.TopicBySubjectIdentifier(tmdm.PSITypeInstance) && slices.ContainsFunc(a.Roles(), func(r *tmdm.AssociationRole) bool { return r.Player() == p.topic }) {
					p.form.Set(rows[0]+"remove", "on")
					a.Remove()
					break
				}
			}
		}
	}
}

// publish sends both.
func (p *pair) publish() {
	a := p.b.Send(p.form, "preview")
	require.Equal(p.t, http.StatusOK, a.StatusCode, "%s", served.TextOf(p.t, a))
	if !strings.Contains(served.TextOf(p.t, a), "You have changed nothing") {
		done := p.b.Send(served.FormOf(p.t, p.form.At, a), "publish")
		require.Equal(p.t, http.StatusSeeOther, done.StatusCode, "%s", done.Bytes)
	}
	var doc bytes.Buffer
	require.NoError(p.t, p.tm.Normalize(p.t.Context()))
	_, err := xtm.Write(&doc, p.tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(p.n.SP("posted"))})
	require.NoError(p.t, err)
	served.Published(p.t, p.n.Do(http.MethodPost, "/topicmaps/posted/topics?topic="+url.QueryEscape(p.si), &doc))
}

// Edits by forms give the same map as the same posts of a program.
func TestRandomEditsByForm(t *testing.T) {
	t.Parallel()
	n := served.Start(t)
	n.Publish("form", served.Small())
	n.Publish("posted", served.Small())
	p := &pair{t: t, n: n, b: n.Browser(), rnd: testenv.Rand(1)}
	for round := range testenv.Rounds(60, 1000) {
		p.begin(served.PSI + p.pick("oslo", "bergen", "norway", "tromsø"))
		for i := range 1 + p.rnd.IntN(2) {
			p.edit(round*10 + i)
		}
		p.publish()
		if round%10 == 9 {
			require.Equal(t, n.Current("posted"), n.Current("form"), "after round %d", round)
		}
	}
}
