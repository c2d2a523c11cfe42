package changes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
)

const jsonLines = "jsonl"

// formats are other output formats than JSON lines. They have the removed and the added statements, and no state before
// and after.
var formats = map[string]func(*Line) ([]byte, error){jsonLines: nil, "json-ld": asJSONLD, "nq": asQuads}

// asJSONLD returns a document of JSON-LD in one line, with the removed and the added statements as graphs.
func asJSONLD(l *Line) ([]byte, error) {
	document := map[string]any{
		"@context": map[string]any{"@vocab": iri.Own, "topic": map[string]string{"@type": "@id"}},
		"kind":     l.Kind, "position": l.Position,
	}
	for key, value := range map[string]string{"topic": l.Topic, "title": l.Title, "author": l.Author, "note": l.Note} {
		if value != "" {
			document[key] = value
		}
	}
	if !l.Time.IsZero() {
		document["time"] = l.Time
	}
	for key, lines := range map[string][]string{"removed": l.Removed, "added": l.Added} {
		if len(lines) == 0 {
			continue
		}
		var all []rdf.Quad
		if err := eachStatement(lines, func(q rdf.Quad) error { all = append(all, q); return nil }); err != nil {
			return nil, err
		}
		var graph bytes.Buffer
		if err := jsonld.Write(&graph, all); err != nil {
			return nil, err
		}
		document[key] = json.RawMessage(graph.Bytes())
	}
	text, err := json.Marshal(document)
	return append(text, '\n'), err
}

// asQuads returns N-Quads: the statements about the change, the removed ones and the added ones, each in its own graph.
func asQuads(l *Line) ([]byte, error) {
	var b strings.Builder
	about := rdf.NewBlank("source")
	if l.Topic != "" {
		about = rdf.NewIRI(iri.FromLocator(l.Topic))
	}
	for _, fact := range [][2]string{{"kind", string(l.Kind)}, {"position", l.Position}} {
		b.WriteString(turtle.Line(rdf.Quad{Subject: about, Predicate: rdf.NewIRI(iri.Own + fact[0]),
			Object: rdf.NewLiteral(fact[1], ""), Graph: rdf.NewIRI(iri.Own + "changes")}))
	}
	for _, part := range []struct {
		graph string
		lines []string
	}{{"removed", l.Removed}, {"added", l.Added}} {
		err := eachStatement(part.lines, func(q rdf.Quad) error {
			q.Graph = rdf.NewIRI(iri.Own + part.graph)
			b.WriteString(turtle.Line(q))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

func eachStatement(lines []string, f func(rdf.Quad) error) error {
	text := strings.NewReader(strings.Join(lines, "\n") + "\n")
	if err := turtle.Read(text, turtle.NTriples, turtle.Options{URI: "a change"}, f); err != nil {
		return fmt.Errorf("the statements of a line: %w", err)
	}
	return nil
}
