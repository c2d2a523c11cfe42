package client_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func (s *subscriber) export(format *formats.Format, claims bool, sources ...string) string {
	var b bytes.Buffer
	losses, err := s.merged().Export(s.t.Context(), &b, format, claims, sources...)
	require.NoError(s.t, err)
	if format != formats.XTM10 {
		require.Zero(s.t, losses.Total(), "%+v", losses)
	}
	return b.String()
}

// statementIDs is the number of statements of the two maps with an id.
const statementIDs = 3

func reread(t *testing.T, document string) *tmdm.TopicMap {
	tm, err := xtm.Read(t.Context(), strings.NewReader(document), xtm.Options{Base: "http://reader.example.org/"})
	require.NoError(t, err)
	return tm
}

// What is exported reads back as the same map, with claims and without.
func TestExportReadsBackAsTheSameMap(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	s, _, _ := both(t, string(maps.EGov), string(maps.Libraries))
	tm, conflicts, err := s.Merged(s.t.Context(), false)
	require.NoError(t, err)
	assert.Zero(t, conflicts)
	const base = "http://reader.example.org/"
	expected := canonical(t, tm, base)
	assert.Equal(t, expected, canonical(t, reread(t, s.export(formats.XTM21, false)), base))
	assert.Equal(t, expected, canonical(t, reread(t, s.export(formats.XTM21, true)), base))
	assert.Equal(t, expected, canonical(t, reread(t, s.export(formats.XTM10, false)), base))

	assert.Contains(t, s.export(formats.XTM21, false), `version="2.1"`)
	assert.Contains(t, s.export(formats.XTM10, false), `xmlns="http://www.topicmaps.org/xtm/1.0/"`)
	assert.True(t, strings.HasPrefix(s.export(formats.CXTM, false), "<topicMap>\n"))
	assert.Equal(t, s.export(formats.XTM21, true), s.export(formats.XTM21, true), "the same bytes each time")
}

func TestExportOfOneSourceIsThatSource(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	s, first, second := both(t, string(maps.EGov), string(maps.Libraries))
	sp := first.SP("egov")
	assert.Equal(t, canonical(t, published(t, string(maps.EGov), sp), sp), canonical(t, reread(t, s.export(formats.XTM21, true, "egov")), sp))
	sp = second.SP("libraries")
	assert.Equal(t, canonical(t, published(t, string(maps.Libraries), sp), sp), canonical(t, reread(t, s.export(formats.XTM21, true, "libraries")), sp))
}

// With claims, every statement has an item identifier under the prefix of each
// source that asserts it, and of no other.
func TestExportClaimsSayWhichSourceAssertsWhat(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	s, first, second := both(t, string(maps.EGov), string(maps.Libraries))
	one, two := first.SP("egov"), second.SP("libraries")
	claims := map[string]int{}
	for statement, ids := range statements(reread(t, s.export(formats.XTM21, true))) {
		by := ""
		for _, sp := range []string{one, two} {
			for _, id := range ids {
				if strings.HasPrefix(string(id), sp) {
					by += sp
					break
				}
			}
		}
		assert.NotEmpty(t, by, "nobody asserts %s", statement)
		claims[by]++
		for _, id := range ids {
			assert.True(t, strings.HasPrefix(string(id), one) || strings.HasPrefix(string(id), two), "%s of %s", id, statement)
		}
	}
	ofOne := len(statements(reread(t, s.export(formats.XTM21, false, "egov"))))
	ofTwo := len(statements(reread(t, s.export(formats.XTM21, false, "libraries"))))
	assert.Equal(t, ofOne, claims[one]+claims[one+two])
	assert.Equal(t, ofTwo, claims[two]+claims[one+two])
	assert.NotZero(t, claims[one+two], "nothing that both assert")

	explicit := 0
	for _, ids := range statements(reread(t, s.export(formats.XTM21, false))) {
		explicit += len(ids)
	}
	assert.Equal(t, statementIDs, explicit, "without claims there are the ids that the documents give")
}

// statements returns the item identifiers of the statements of a map, by their descriptions.
func statements(tm *tmdm.TopicMap) map[string][]tmdm.Locator {
	all := map[string][]tmdm.Locator{}
	add := func(c tmdm.Construct) {
		key := tmdm.Describe(c)
		for all[key] != nil {
			key += "'"
		}
		all[key] = append([]tmdm.Locator{}, c.ItemIdentifiers()...)
	}
	for t := range tm.Topics() {
		for _, n := range t.Names() {
			add(n)
			for _, v := range n.Variants() {
				add(v)
			}
		}
		for _, o := range t.Occurrences() {
			add(o)
		}
	}
	for a := range tm.Associations() {
		add(a)
	}
	return all
}

// An exported map is never silently empty or incomplete.
func TestExportWithoutALoadedSourceIsAnError(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := newSubscriber(t)
	fails := func(says string, sources ...string) {
		t.Helper()
		var b bytes.Buffer
		_, err := s.merged().Export(o.T.Context(), &b, formats.XTM21, true, sources...)
		assert.EqualError(t, err, says)
		assert.Zero(t, b.Len())
	}
	fails("there are no subscriptions: subscribe to a URL first")
	_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Name: "second", Again: true})
	require.NoError(t, err)
	fails("not loaded yet: egov, second; sync first")
	s.sync()
	fails("not loaded yet: second; sync first", "second")
	fails("not loaded yet: second; sync first", "egov", "second")
	fails(`there is no subscription "third"; there are: egov, second`, "egov", "third")

	assert.Contains(t, s.export(formats.XTM21, true), si("t1"))
	assert.Contains(t, s.reported(), "not loaded yet and left out: second")
}

func TestExportOfAnEmptySourceIsAnEmptyMap(t *testing.T) {
	t.Parallel()
	s := inStep(t, publishing(t, doc()))
	assert.Equal(t, "<topicMap>\n</topicMap>\n", s.export(formats.CXTM, false))
}

// XTM 1.0 cannot express all statements of sources; the omitted ones are counted.
func TestExportCountsWhatXTM1CannotCarry(t *testing.T) {
	t.Parallel()
	s := inStep(t, publishing(t, doc(`<topic><subjectIdentifier href="http://psi.example.org/a"/><name><type><subjectIdentifierRef href="http://psi.example.org/nick"/></type><value>A</value></name>`+
		`<occurrence><type><subjectIdentifierRef href="http://psi.example.org/nick"/></type><resourceData datatype="http://www.w3.org/2001/XMLSchema#integer">1</resourceData></occurrence></topic>`, topic("nick", "nickname"))))
	losses, err := s.merged().Export(s.t.Context(), &bytes.Buffer{}, formats.XTM10, false)
	require.NoError(t, err)
	assert.Equal(t, xtm.Losses{NameTypes: 1, Datatypes: 1}, losses)
}

// One topic may reify different statements in two sources. One of them wins, and the user gets a message.
func TestExportTellsOfConflictingReifications(t *testing.T) {
	t.Parallel()
	reifying := func(name string) string {
		return doc(topic("r", "R"), `<topic><subjectIdentifier href="http://psi.example.org/a"/>`+
			`<name><reifier><subjectIdentifierRef href="http://psi.example.org/r"/></reifier><value>`+name+`</value></name></topic>`)
	}
	s, _, _ := both(t, reifying("A"), reifying("B"))
	var b bytes.Buffer
	_, err := s.merged().Export(s.t.Context(), &b, formats.XTM21, false)
	require.NoError(t, err)
	assert.Contains(t, s.reported(), "topics that reify different statements in several sources: 1; the first by prefix is exported")
	assert.Equal(t, 1, strings.Count(b.String(), "reifier=")+strings.Count(b.String(), "<reifier>"))
}
