package synthetic

import (
	"bufio"
	"fmt"
	"io"
)

// StatementsPerConcept is the number of RDF statements of each concept that [WriteSKOS] writes.
const StatementsPerConcept = 8

// Notations are the notations of RDF that [WriteSKOS] writes.
var Notations = []string{"NTriples", "Turtle", "RDFXML"}

// WriteSKOS writes a thesaurus of n concepts in one of the Notations: each has a type, a label in three languages, a
// notation, a definition, a broader concept and a scheme.
func WriteSKOS(w io.Writer, notation string, n int) error {
	out := bufio.NewWriterSize(w, 256<<10)
	write, end := writeNTriples, ""
	switch notation {
	case "Turtle":
		fmt.Fprintf(out, "@prefix skos: <%s> .\n@prefix xsd: <%s> .\n@prefix c: <%sconcept/> .\n", skos, xsd, Base)
		write = writeTurtle
	case "RDFXML":
		fmt.Fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rdf:RDF xmlns:rdf=\"%s\" xmlns:skos=\"%s\">\n", rdf,
			skos)
		write, end = writeRDFXML, "</rdf:RDF>\n"
	}
	for i := range n {
		write(out, i, i/10)
	}
	out.WriteString(end)
	return out.Flush()
}

const (
	rdf  = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	skos = "http://www.w3.org/2004/02/skos/core#"
	xsd  = "http://www.w3.org/2001/XMLSchema#"
)

func writeNTriples(w io.Writer, i, broader int) {
	s := fmt.Sprintf("<%sconcept/%d> ", Base, i)
	fmt.Fprintf(w, "%s<%stype> <%sConcept> .\n", s, rdf, skos)
	fmt.Fprintf(w, "%s<%sprefLabel> \"Concept %d\"@en .\n", s, skos, i)
	fmt.Fprintf(w, "%s<%sprefLabel> \"Begriff Nr. %d, übersetzt\"@de .\n", s, skos, i)
	fmt.Fprintf(w, "%s<%saltLabel> \"Begrep %d\"@nb .\n", s, skos, i)
	fmt.Fprintf(w, "%s<%snotation> \"%d\"^^<%sinteger> .\n", s, skos, i, xsd)
	fmt.Fprintf(w, "%s<%sdefinition> \"What \\\"concept %d\\\" means,\\nin two lines.\"@en .\n", s, skos, i)
	fmt.Fprintf(w, "%s<%sbroader> <%sconcept/%d> .\n", s, skos, Base, broader)
	fmt.Fprintf(w, "%s<%sinScheme> <%sscheme> .\n", s, skos, Base)
}

func writeTurtle(w io.Writer, i, broader int) {
	fmt.Fprintf(w, `
c:%d a skos:Concept ;
    skos:prefLabel "Concept %d"@en , "Begriff Nr. %d, übersetzt"@de ;
    skos:altLabel "Begrep %d"@nb ;
    skos:notation %d ;
    skos:definition "What \"concept %d\" means,\nin two lines."@en ;
    skos:broader c:%d ;
    skos:inScheme <%sscheme> .
`, i, i, i, i, i, i, broader, Base)
}

func writeRDFXML(w io.Writer, i, broader int) {
	fmt.Fprintf(w, `  <skos:Concept rdf:about="%[1]sconcept/%[3]d">
    <skos:prefLabel xml:lang="en">Concept %[3]d</skos:prefLabel>
    <skos:prefLabel xml:lang="de">Begriff Nr. %[3]d, übersetzt</skos:prefLabel>
    <skos:altLabel xml:lang="nb">Begrep %[3]d</skos:altLabel>
    <skos:notation rdf:datatype="%[2]sinteger">%[3]d</skos:notation>
    <skos:definition xml:lang="en">What "concept %[3]d" means,
in two lines.</skos:definition>
    <skos:broader rdf:resource="%[1]sconcept/%[4]d"/>
    <skos:inScheme rdf:resource="%[1]sscheme"/>
  </skos:Concept>
`, Base, xsd, i, broader)
}
