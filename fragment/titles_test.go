package fragment

import (
	"fmt"
	"iter"
	"testing"
	"time"

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

// unlabelled is a map that does not know labels that are resources.
type unlabelled struct{}

func (unlabelled) Topic(Ref) (*Topic, error) { return nil, nil }

func (unlabelled) AssociationsOf(Ref, Part) iter.Seq2[*Association, error] { panic("nobody asks") }

// BenchmarkTitle compares reading titles from stored bytes with the least that it can cost, and reading them in a map
// without labels that are resources with reading them where nobody asks whether there are any.
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
