package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkAddConcept measures the time of publishing a new concept of a scheme of 100 concepts and of one of 50,000,
// in turn. Followers read the same of either: TestOneConceptMoreCostsNoMoreInALargeScheme counts the bytes.
func BenchmarkAddConcept(b *testing.B) {
	const posts, few = 100, 100
	many := 50_000
	if testing.Short() {
		many = 1000
	}
	large, small := newScheme(b, many), newScheme(b, few)
	for b.Loop() {
		for range posts {
			large.add()
			small.add()
		}
	}
	b.ReportMetric(0, "ns/op")
	large.report(b)
	small.report(b)
	ratio(b, large.median().Seconds(), small.median().Seconds(), "time-of-"+small.name)
}

// scheme adds concepts to a scheme that a node of its own serves.
type scheme struct{ editor }

func newScheme(b *testing.B, concepts int) *scheme {
	c := inFile(b, func(w io.Writer) error {
		document := bytes.NewBufferString(mapBegins + `<topic><subjectIdentifier href="http://example.org/scheme"/><name><value>The scheme</value></name></topic>`)
		for i := range concepts {
			document.WriteString(inScheme(fmt.Sprint(i)))
		}
		_, err := io.WriteString(w, document.String()+"</topicMap>\n")
		return err
	})
	c.topics = concepts + 4 + 1 // the scheme, the types of associations and of roles; that of names
	s := &scheme{editor{name: fmt.Sprintf("%d-concepts", concepts)}}
	s.node = serve(b, importInto(b, c))
	return s
}

const mapBegins = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`

// inScheme is a concept of the scheme.
func inScheme(id string) string {
	role := func(typ, player string) string {
		return fmt.Sprintf(`<role><type><subjectIdentifierRef href="http://example.org/%s"/></type><subjectIdentifierRef href="http://example.org/%s"/></role>`, typ, player)
	}
	return fmt.Sprintf(`<topic><subjectIdentifier href="http://example.org/c/%s"/><name><value>Concept %[1]s</value></name></topic>
<association><type><subjectIdentifierRef href="http://example.org/in-scheme"/></type>%s%s</association>
`, id, role("concept", "c/"+id), role("in", "scheme"))
}

func (s *scheme) add() {
	s.round++
	p := s.send(mapBegins + inScheme(fmt.Sprintf("new-%d", s.round)) + "</topicMap>\n")
	require.Equal(s.b, 1, p.Added)
	require.Equal(s.b, 1, p.Updated)
}
