package ldes_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testenv"
)

// members are some of a stream: the member n is a version of the resource n modulo 7. The statements about resources
// that it refers to stand beside it.
func members(numbers ...int) (all string) {
	for _, n := range numbers {
		all += version(fmt.Sprint("m", n), n, fmt.Sprint("r", n%7), fmt.Sprintf("; :n %d ; :part :p%[1]d , [ :in :p%[1]d ] . :p%[1]d :not :read", n))
	}
	return all
}

// numbers are from..to.
func numbers(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// saysOf returns the statements held after the members 0..last were taken.
func saysOf(last int) (all string) {
	for n := max(0, last-6); n <= last; n++ {
		all += fmt.Sprintf(":r%d :n %d ; :part :p%[2]d , [ :in :p%[2]d ] .\n", n%7, n)
	}
	return all
}

// to is a relation of a page to another one, of a kind, with its statements.
func to(from, kind, node, says string) string {
	return fmt.Sprintf("<%s> tree:relation [ a %s ; tree:node <%s> %s ] .\n", from, kind, node, says)
}

// second is a bound of a relation: the time of the member n.
func second(n int) string {
	return fmt.Sprintf(`; tree:path dcterms:modified ; tree:value "2026-01-01T00:00:%02dZ"^^xsd:dateTime`, n)
}

// between are the two relations to a page with the members from..to-1.
func between(page, node string, from, until int) string {
	return to(page, "tree:GreaterThanOrEqualToRelation", node, second(from)) + to(page, "tree:LessThanRelation", node, second(until))
}

// about has the statements of a publisher about its stream in each document, with a shape that some members do not
// have.
const about = `<s> a ldes:EventStream ; ldes:versionOfPath dcterms:isVersionOf ; ldes:timestampPath dcterms:modified ;
	tree:shape [ a <http://www.w3.org/ns/shacl#NodeShape> ; <http://www.w3.org/ns/shacl#property> [
		<http://www.w3.org/ns/shacl#path> :part ; <http://www.w3.org/ns/shacl#node> [ <http://www.w3.org/ns/shacl#targetClass> :Part ] ] ] .
`

// shapes are streams in the shapes in which publishers have them: from where they are followed, and their pages in TriG. The member
// 15 comes later: "+" stands for it.
var shapes = map[string]struct {
	start string
	last  int // member at first
	pages map[string]string
}{
	"a chain by time, which another document describes": {"s", 11, map[string]string{
		"s": about + `<s> tree:view <0> .`,
		"0": about + `<s> tree:view <0> .` + members(0, 1, 2) + to("0", "tree:GreaterThanOrEqualToRelation", "1", second(3)),
		"1": about + `<s> tree:view <0> .` + members(3, 4, 5) + to("1", "tree:GreaterThanOrEqualToRelation", "2", second(6)),
		"2": about + `<s> tree:view <0> .` + members(numbers(6, 11)...) + "+",
	}},
	"each page states that it is a view": {"0", 8, map[string]string{
		"0": about + `<s> tree:view <0> .` + members(0, 1, 2) + to("0", "tree:Relation", "1", ""),
		"1": about + `<s> tree:view <1> .` + members(numbers(3, 8)...) + "+",
	}},
	"relations of unknown classes and with unknown values": {"s", 11, map[string]string{
		"s":   about + `<s> tree:view <0> .`,
		"0":   about + `<s> tree:view <0> .` + to("0", ":Within", "1", `; tree:path dcterms:modified ; tree:value "2026-01-01T00"`) + to("0", ":Within", "2", `; tree:value "x"`),
		"1":   to("1", "tree:Relation", "1.1", "") + to("1", ":Within", "1.2", ""),
		"1.1": about + members(0, 1, 2) + to("1.1", "tree:Relation", "1.2", ""),
		"1.2": about + members(3, 4, 5),
		"2":   about + members(numbers(6, 11)...) + "+",
	}},
	"a tree of spans": {"s", 14, map[string]string{
		"s":  about + `<s> tree:view <0> .`,
		"0":  about + `<s> tree:view <0> .` + to("0", "tree:InBetweenRelation", "26", `; tree:path dcterms:modified ; tree:value "2026"^^xsd:gYear`),
		"26": about + `<s> tree:view <26> .` + to("26", "tree:InBetweenRelation", "a", `; tree:path dcterms:modified ; tree:value "2026-01-01Z"^^xsd:date`) + to("26", "tree:InBetweenRelation", "b", `; tree:path dcterms:modified ; tree:value "2026-01-01T00"^^xsd:string`),
		"a":  about + members(numbers(0, 6)...),
		"b":  about + members(numbers(7, 14)...) + "+",
	}},
	"a list that goes back in time": {"s", 8, map[string]string{
		"s": about + `<s> tree:view <s> .` + members(8, 7, 6) + "+" + to("s", "tree:Relation", "1", ""),
		"1": about + `<s> tree:view <s> .` + members(3, 4, 5) + to("1", "tree:Relation", "2", ""),
		"2": about + `<s> tree:view <s> .` + members(2, 0, 1),
	}},
	"pages that say nothing of the stream": {"s", 11, map[string]string{
		"s": about + `<s> tree:view <0> .`,
		"0": members(0, 1, 2) + to("0", "tree:GreaterThanOrEqualToRelation", "1", second(3)),
		"1": members(numbers(3, 11)...) + "+",
	}},
	"a circle of immutable pages": {"s", 11, map[string]string{
		"s": about + `<s> tree:view <0> .`,
		"0": about + members(11, 10, 9) + "+" + to("0", "tree:LessThanOrEqualToRelation", "1", second(8)),
		"1": "!" + about + members(numbers(5, 8)...) + to("1", "tree:LessThanOrEqualToRelation", "2", second(4)) + to("1", "tree:GreaterThanRelation", "0", second(8)),
		"2": "!" + about + members(numbers(0, 4)...) + to("2", "tree:GreaterThanRelation", "1", second(4)),
	}},
	"a calendar": {"s", 5, map[string]string{
		"s":     about + `<s> tree:view <s> .` + between("s", "26", 0, 59),
		"26":    about + between("26", "26-01", 0, 59),
		"26-01": "!" + about + between("26-01", "a", 0, 3) + between("26-01", "b", 3, 59),
		"a":     "!" + about + `<a> ldes:immutable true .` + members(0, 1, 2),
		"b":     about + members(3, 4, 5) + "+",
	}},
	"by beginnings of words, and by places": {"s", 9, map[string]string{
		"s": about + `<s> tree:view <s> .` + to("s", "tree:PrefixRelation", "a", `; tree:path :name ; tree:value "a"`) + to("s", "tree:SubstringRelation", "b", `; tree:path :name ; tree:value "b"`) +
			to("s", "tree:GeospatiallyContainsRelation", "c", `; tree:path :at ; tree:value "POINT (1 1)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>`),
		"a": members(0, 3, 6, 9), "b": members(1, 4, 7), "c": members(2, 5, 8) + "+",
	}},
	"numbers of pages in queries": {"by-page", 7, map[string]string{
		"by-page":              about + `<s> tree:view <by-page> .` + to("by-page", "tree:Relation", "by-page?pageNumber=1", ""),
		"by-page?pageNumber=1": "!" + about + `<by-page?pageNumber=1> tree:remainingItems 3 .` + members(numbers(0, 4)...) + to("by-page?pageNumber=1", "tree:Relation", "by-page?pageNumber=2", ""),
		"by-page?pageNumber=2": about + members(5, 6, 7) + "+",
	}},
	"a description of the view": {"s", 4, map[string]string{
		"s": about + `<s> tree:view <s> . <s> tree:viewDescription <s#view> . <s#view> a ldes:EventSource ; ldes:retentionPolicy [ a ldes:LatestVersionSubset ; ldes:amount 1 ] .` + members(numbers(0, 4)...) + "+",
	}},
	"a root that has moved": {"old", 4, map[string]string{
		"old": ">0", "0": about + `<s> tree:view <0> .` + members(numbers(0, 4)...) + "+",
	}},
	"a page that is gone, with two addresses for another": {"s", 6, map[string]string{
		"s":   about + `<s> tree:view <s> .` + leads("s", "gone", "old", "older", "new") + members(5, 6) + "+",
		"new": "!" + about + members(numbers(0, 4)...), "old": ">new", "older": ">old", "gone": "410",
	}},
}

func (h *hosted) set(path string, p hostedPage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages[path] = p
}

// put puts the pages of a shape on the server. A page that begins with ">" leads to another address.
func (h *hosted) put(pages map[string]string, later string) {
	for path, body := range pages {
		if at, moved := strings.CutPrefix(body, ">"); moved {
			h.set("/"+path, hostedPage{status: 301, location: "/" + at})
		} else if body == "410" {
			h.set("/"+path, hostedPage{status: 410})
		} else {
			h.has("/"+path, strings.ReplaceAll(body, "+", later))
		}
	}
}

// Streams in the shapes of publishers, and of the tests of other clients, are followed to the same members. One
// that goes back is in doubt.
func TestShapesOfStreams(t *testing.T) {
	t.Parallel()
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			h.put(s.pages, "")
			var reports []string
			f := newFollower(t, func(c *client.Config) { c.Report = func(line string) { reports = append(reports, line) } })
			f.follow(h.URL+"/"+s.start, "s", client.SubscribeOptions{Protocol: "ldes"})
			reports = nil
			f.sync("s")
			f.says("s", saysOf(s.last))
			for range 3 {
				require.Zero(t, f.sync("s").Applied)
			}
			h.put(s.pages, members(s.last+1))
			require.Equal(t, 1, f.sync("s").Applied)
			f.says("s", saysOf(s.last+1))
			require.Empty(t, reports)
			h.put(s.pages, "") // it was put back
			for range 2 {
				doubt := f.doubts("s")
				require.Equal(t, follow.LossOlder, doubt.Loss)
				require.Equal(t, "the newest member is older than the one that was handled last", doubt.Reason)
				f.says("s", saysOf(s.last+1))
			}
			h.put(s.pages, members(s.last+1))
			f.sync("s")
			f.says("s", saysOf(s.last+1))
		})
	}
}

// ldes-client reads the same members from these streams.
func TestLDESClientReadsTheseShapes(t *testing.T) {
	testenv.OnlyWithAll(t, "runs ldes-client")
	t.Parallel()
	for name, s := range shapes {
		if slices.Contains([]string{"a page that is gone, with two addresses for another"}, name) {
			continue // it ends at such pages
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			h.put(s.pages, "")
			_, says := emitted(t, h.URL+"/"+s.start)
			var found []string
			for _, q := range says {
				if q.Predicate.Value == isVersionOf {
					found = append(found, strings.TrimPrefix(q.Subject.Value, h.URL+"/m"))
				}
			}
			var want []string
			for n := range s.last + 1 {
				want = append(want, fmt.Sprint(n))
			}
			require.ElementsMatch(t, want, found)
		})
	}
}

// The same stream is the same in all notations, with relative IRIs, and packed.
func TestNotationsOfStreams(t *testing.T) {
	t.Parallel()
	h := host(t)
	body := about + `<root> a tree:Node . <s> tree:view <root> .` + members(numbers(0, 8)...)
	h.has("/root", body)
	var all statements
	require.NoError(t, turtle.Read(strings.NewReader(h.pages["/root"].body), turtle.TriG, turtle.Options{}, func(q rdf.Quad) error { all = append(all, q); return nil }))
	relative := regexp.MustCompile(`<` + regexp.QuoteMeta(h.URL) + `/`).ReplaceAllString
	var lines, inXML, inJSON bytes.Buffer
	for _, q := range all {
		lines.WriteString(turtle.Line(q))
	}
	require.NoError(t, rdfxml.Write(&inXML, all))
	require.NoError(t, jsonld.Write(&inJSON, all))
	for kind, body := range map[string]string{
		"application/n-quads":                  lines.String(),
		"application/n-triples":                lines.String(),
		"text/turtle":                          relative(lines.String(), "<"),
		"text/turtle; charset=utf-8":           relative(lines.String(), "</"),
		"application/trig":                     "{ " + relative(lines.String(), "<") + " }",
		"application/rdf+xml":                  inXML.String(),
		"application/ld+json":                  inJSON.String(),
		"application/json":                     strings.ReplaceAll(inJSON.String(), h.URL+"/", ""),
		`application/ld+json;profile="a tree"`: inJSON.String(),
	} {
		for _, packed := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, " ", packed), func(t *testing.T) {
				p := hostedPage{kind: kind, body: body}
				if packed {
					var b bytes.Buffer
					z := gzip.NewWriter(&b)
					_, err := z.Write([]byte(body))
					require.NoError(t, err)
					require.NoError(t, z.Close())
					p.body, p.coding = b.String(), "gzip"
				}
				h.set("/root", p)
				f := newFollower(t)
				f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
				f.sync("s")
				f.says("s", saysOf(8))
			})
		}
	}
}

// Events contain statements: those about the resource are in a graph of the event.
func TestEventsAroundStatements(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/feed", `<feed> a ldes:EventStream ; tree:view <feed> ; ldes:timestampPath as:published ; ldes:versionOfPath as:object ;
		ldes:versionCreateObject as:Create ; ldes:versionUpdateObject as:Update ; ldes:versionDeleteObject as:Delete ;
		tree:member <feed#1> , <feed#2> , <feed#3> , <feed#4> .
		<feed#1> a as:Create ; as:object :x ; as:published "2026-01-01T00:00:01Z"^^xsd:dateTime . <feed#1> { :x :n 1 . }
		<feed#2> a as:Create ; as:object :y ; as:published "2026-01-01T00:00:02Z"^^xsd:dateTime . <feed#2> { :y :n 2 . }
		<feed#3> a as:Update ; as:object :x ; as:published "2026-01-01T00:00:03Z"^^xsd:dateTime . <feed#3> { :x :n 3 ; :in [ :n 4 ] . }
		<feed#4> a as:Delete ; as:object :y ; as:published "2026-01-01T00:00:04Z"^^xsd:dateTime .`)
	f := newFollower(t)
	f.follow(h.URL+"/feed", "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	f.says("s", ":x :n 3 ; :in [ :n 4 ] .")
}

// A context that is elsewhere is not fetched, and named.
func TestContextsElsewhere(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.pages["/root"] = hostedPage{kind: "application/ld+json", body: `{"@context": "https://w3id.org/ldes/context", "@id": "s"}`}
	_, err := newFollower(t).Subscribe(t.Context(), h.URL+"/root", client.SubscribeOptions{Protocol: "ldes"})
	require.ErrorContains(t, err, "the context <https://w3id.org/ldes/context> is not fetched")
}

// A member consists of the statements that the specification defines: its own, those of its graph, and those of blank
// nodes, wherever they stand.
func TestWhatBelongsToMembers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, says string }{
		"named outside, said inside":  {`<m> :p _:b . <m> { _:b :q 1 . }`, `:x :p [ :q 1 ] .`},
		"named inside, said outside":  {`<m> { :x :p _:b . } _:b :q 1 .`, `:x :p [ :q 1 ] .`},
		"inside, outside, and inside": {`<m> { :x :p _:b . _:c :r 1 . } _:b :q _:c .`, `:x :p [ :q [ :r 1 ] ] .`},
		"of two members":              {`<m> { :x :p _:b . } <other> { :y :p _:c . } _:b :q 1 . _:c :q 2 .`, `:x :p [ :q 1 ] .`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			h.has("/root", stream+version("m", 1, "x", "")+c.body)
			f := newFollower(t)
			f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
			f.sync("s")
			f.says("s", c.says)
		})
	}
}

// Pages that get no more members, as the times in relations to them say, are read twice, and then not any more: the
// newest alone is asked for. They are read again where relations say otherwise, and once a day.
func TestBoundsOfRelations(t *testing.T) {
	t.Parallel()
	h := host(t)
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	f := newFollower(t, func(c *client.Config) { c.Now = func() time.Time { return now } })
	asks := func(want ...string) {
		t.Helper()
		h.requests()
		f.sync("s")
		require.Equal(t, want, h.requests())
	}
	h.has("/root", stream+between("root", "a", 0, 3)+to("root", "tree:LessThanOrEqualToRelation", "b", second(5))+
		to("root", "tree:GreaterThanOrEqualToRelation", "c", second(6)))
	h.has("/a", members(0, 1, 2))
	h.has("/b", members(3, 4, 5))
	h.has("/c", members(6))
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	asks("/a", "/b", "/c", "/root")
	asks("/a 304", "/b 304", "/c 304", "/root 304")
	asks("/a", "/b", "/c 304", "/root 304")
	asks("/c 304", "/root 304")
	h.has("/c", members(6, 7, 8))
	asks("/c", "/root 304")
	f.says("s", saysOf(8))
	asks("/c 304", "/root 304")

	h.has("/root", stream+between("root", "a", 0, 3)+between("root", "b", 3, 6)+between("root", "c", 6, 9)+to("root", "tree:GreaterThanOrEqualToRelation", "d", second(9)))
	h.has("/d", members(9))
	asks("/c 304", "/d", "/root")
	asks("/c 304", "/d 304", "/root 304")
	asks("/c", "/d 304", "/root 304")
	asks("/d 304", "/root 304")
	f.says("s", saysOf(9))

	h.has("/root", stream+between("root", "a", 0, 3)+to("root", "tree:GreaterThanOrEqualToRelation", "b", second(3))+between("root", "c", 6, 9)+to("root", "tree:GreaterThanOrEqualToRelation", "d", second(9)))
	h.has("/b", members(3, 4, 5, 10))
	asks("/b", "/d 304", "/root")
	f.says("s", saysOf(10))
	asks("/b 304", "/d 304", "/root 304")

	h.has("/a", members(0, 1, 2)+version("late", 1, "late", "; :n 1")) // against the rules
	asks("/b 304", "/d 304", "/root 304")
	now = now.Add(25 * time.Hour)
	f.sync("s")
	f.says("s", saysOf(10)+":late :n 1 .")
}

// Times in relations say nothing where they are of something else, or are not comparable, and where members wait.
func TestBoundsThatDoNotCount(t *testing.T) {
	t.Parallel()
	until := `; tree:path dcterms:modified ; tree:value "2026-01-01T00:00:03Z"^^xsd:dateTime`
	for name, c := range map[string]struct{ stream, relation, members string }{
		"another path":         {"", to("root", "tree:LessThanRelation", "a", strings.ReplaceAll(until, "modified", "created")), ""},
		"another relation":     {"", to("root", "tree:GreaterThanRelation", "a", until), ""},
		"no zone":              {"", to("root", "tree:LessThanRelation", "a", strings.ReplaceAll(until, "Z", "")), ""},
		"members without":      {"", to("root", "tree:LessThanRelation", "a", until), `<s> tree:member <l> . <l> dcterms:isVersionOf :l ; dcterms:modified "2026-01-01T00:00:02" .`},
		"not before all":       {"", to("root", "tree:LessThanRelation", "a", strings.ReplaceAll(until, "03Z", "09Z")), ""},
		"equal":                {"", to("root", "tree:LessThanOrEqualToRelation", "a", strings.ReplaceAll(until, "03Z", "08Z")), ""},
		"versions come late":   {"<s> ldes:versionTimestampPath dcterms:modified .", to("root", "tree:LessThanRelation", "a", until), ""},
		"another page differs": {"", to("root", "tree:LessThanRelation", "a", until) + leads("root", "b"), ""},
		"the future":           {"", to("root", "tree:LessThanRelation", "a", strings.ReplaceAll(until, "2026", "2126")), `<s> tree:member <f> . <f> dcterms:isVersionOf :f ; dcterms:modified "2226-01-01T00:00:00Z" .`},
		"part of something":    {"<s> ldes:transactionPath :in ; ldes:transactionFinalizedPath :last .", to("root", "tree:LessThanRelation", "a", until), version("w", 2, "w", `; :in "t"`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			h.has("/root", stream+c.stream+c.relation+members(8))
			h.has("/a", members(0, 1, 2)+c.members)
			h.has("/b", leads("b", "a"))
			f := newFollower(t)
			f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
			for range 5 {
				h.requests()
				f.sync("s")
			}
			require.Contains(t, strings.Join(h.requests(), " "), "/a")
		})
	}
}
