package fragment

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// simpleTitle takes the first name of the default type without themes, else the first one: the least that reading a
// title from stored bytes can cost.
func simpleTitle(record []byte) string {
	r := reader[[]byte]{rest: TopicContent(record)}
	identifiers := r.count()
	title := r.text()
	r.skip(identifiers - 1)
	r.skip(r.count())
	best := 0
	for range r.count() {
		value, typ := r.text(), r.text()
		themes := r.count()
		r.skip(themes + 1)
		for range r.count() {
			r.skip(2)
			r.skip(r.count() + 1)
		}
		rank := 1
		if themes == 0 {
			rank += 2
		}
		if string(typ) == string(tmdm.PSIDefaultNameType) {
			rank++
		}
		if rank > best && len(value) > 0 {
			title, best = value, rank
		}
	}
	return string(title)
}

// star is a map of a topic in the middle that plays in many associations. The last one leads to its label.
type star struct {
	many, read int
	broken     Ref // cannot be read
}

var errBroken = errors.New("broken")

func (s *star) Topic(si Ref) (*Topic, error) {
	t := &Topic{Identity: Identity{SubjectIdentifiers: []Ref{si}}}
	switch si {
	case s.broken:
		return nil, errBroken
	case "http://x/label":
		t.Occurrences = []Occurrence{{Value: "its label", Type: titles.LiteralForm}}
	case titles.XLPrefLabel:
		t.SubjectIdentifiers = []Ref{"http://other.example.org/label", si} // a map may call it so
	case titles.XLAltLabel:
		return nil, nil
	}
	return t, nil
}

func (s *star) AssociationsOf(player Ref, _ Part) iter.Seq2[*Association, error] {
	return func(yield func(*Association, error) bool) {
		for s.read = range s.many {
			a := &Association{Type: "http://x/narrower", Roles: []Role{{Type: RDFObject, Player: Ref(fmt.Sprint("http://x/", s.read))}, {Type: "http://x/subject", Player: player}}}
			if s.read == s.many-1 {
				a.Type, a.Roles[0].Player = "http://other.example.org/label", "http://x/label"
			}
			var err error
			if Ref(fmt.Sprint("http://x/", s.read)) == s.broken {
				err = errBroken
			}
			if !yield(a, err) {
				return
			}
		}
	}
}

// A title takes a bounded number of reads, reports read errors, and reads nothing of a map without labels, or
// of a topic that has a preferred label of SKOS.
func TestTitlesOfLabelsAreBounded(t *testing.T) {
	t.Parallel()
	concept := &Topic{Identity: Identity{SubjectIdentifiers: []Ref{"http://x/concept"}}}
	for many, want := range map[int]string{1: "its label", mostPlayed: "its label", mostPlayed + 1: "http://x/concept", 100 * mostPlayed: "http://x/concept"} {
		in := &star{many: many}
		names := Names{In: in}
		title, err := names.Title(concept)
		require.NoError(t, err)
		assert.Equal(t, want, title, many)
		assert.Less(t, in.read, mostPlayed)
		stored, err := names.Stored(MarshalTopic(concept))
		require.NoError(t, err)
		assert.Equal(t, want, stored, many)
	}
	for _, broken := range []Ref{titles.XLPrefLabel, titles.XLAltLabel, "http://x/label", "http://x/7"} {
		names := Names{In: &star{many: 10, broken: broken}}
		_, err := names.Title(concept)
		require.ErrorIs(t, err, errBroken, broken)
		_, err = names.Stored(MarshalTopic(concept))
		require.ErrorIs(t, err, errBroken, broken)
	}
	for typ, in := range map[Ref]Lookup{titles.PrefLabel: &star{many: 1, broken: titles.XLPrefLabel}, tmdm.PSIDefaultNameType: unlabelled{}} {
		named := &Topic{Identity: concept.Identity, Names: []Name{{Value: "its name", Type: typ}}}
		names := Names{In: in}
		title, err := names.Title(named)
		require.NoError(t, err)
		assert.Equal(t, "its name", title)
	}
}

// unlabelled is a map that does not know labels that are resources.
type unlabelled struct{}

func (unlabelled) Topic(Ref) (*Topic, error) { return nil, nil }

func (unlabelled) AssociationsOf(Ref, Part) iter.Seq2[*Association, error] { panic("nobody asks") }

// BenchmarkTitle compares reading titles from stored bytes with the least that it can cost, and reading them in a map
// without labels that are resources with reading them without a query for such labels.
func BenchmarkTitle(b *testing.B) {
	const language = "https://github.com/tmshare/tmshare/ns/1/language/"
	for name, names := range map[string]func(i int) Name{
		"default type": func(i int) Name {
			n := Name{Value: fmt.Sprint("Subject number ", i), Type: tmdm.PSIDefaultNameType}
			if i > 0 {
				n.Scope = []Ref{Ref(fmt.Sprint("http://psi.example.org/theme/", i))}
			}
			return n
		},
		"labels of SKOS": func(i int) Name {
			return Name{Value: fmt.Sprint("Subject number ", i), Type: []Ref{titles.PrefLabel, titles.AltLabel}[i%2],
				Scope: []Ref{language + []Ref{"en", "fi", "de", "sv"}[i]}}
		},
	} {
		for _, languages := range [][]string{nil, {"en"}} {
			t := &Topic{Identity: Identity{SubjectIdentifiers: []Ref{"http://psi.example.org/subject/1"}}}
			for i := range 4 {
				t.Names = append(t.Names, names(i))
			}
			t.Canonical()
			record := MarshalTopic(t)
			b.Run(fmt.Sprintf("%s/%v", name, languages), func(b *testing.B) {
				known, unknown := Names{In: unlabelled{}, Languages: languages}, Names{Languages: languages}
				took := func(f func() (string, error)) time.Duration {
					least := time.Hour
					for range 5 {
						start := testenv.CPUTime()
						for range 20_000 {
							if _, err := f(); err != nil {
								b.Fatal(err)
							}
						}
						least = min(least, testenv.CPUTime()-start)
					}
					return least
				}
				for b.Loop() {
					simple := took(func() (string, error) { return simpleTitle(record), nil })
					title := took(func() (string, error) { return known.Stored(record) })
					unasked := took(func() (string, error) { return unknown.Stored(record) })
					b.ReportMetric(float64(title)/float64(unasked), "ratio-unasked")
					b.ReportMetric(float64(title)/float64(simple), "ratio")
					b.ReportMetric(float64(simple)/20_000, "simple-ns")
				}
			})
		}
	}
}
