// Package synthetic makes topic maps for benchmarks: of any size, the same for
// the same size, of the shape that public comparisons of topic map engines use.
// Each topic has one type, one subject identifier, two names of which one is
// scoped, two occurrences, and plays in three binary associations (1.5 per topic).
package synthetic

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
)

// The vocabulary that all topics share. It adds some tens of topics to each map.
const (
	classes   = 20
	themes    = 4
	relations = 10
	others    = 4 // "note", "homepage", "part", "whole"
)

// Vocabulary is the number of topics of the vocabulary in a map, besides its own.
const Vocabulary = classes + themes + relations + others

// Base is the locator that relative references of a written map are meant
// against, and the prefix of its subject identifiers.
const Base = "http://psi.example.org/"

// Write writes a map of n topics, and those of the vocabulary, as XTM 1.0:
// about 1,180 bytes per topic.
func Write(w io.Writer, n int) error { return write(w, n, 0) }

// WriteReified is Write of a map in which one of every topics has a reified name. Its reifiers, named Reifier 0 and so
// on, are added to the n topics.
func WriteReified(w io.Writer, n, every int) error { return write(w, n, every) }

func write(w io.Writer, n, every int) error {
	out := bufio.NewWriterSize(w, 256<<10)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	fmt.Fprint(out, `<?xml version="1.0" encoding="UTF-8"?>
<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">
`)
	for i := range classes {
		vocabulary(out, fmt.Sprintf("class-%d", i), fmt.Sprintf("Class %d", i))
	}
	for i := range themes {
		vocabulary(out, fmt.Sprintf("theme-%d", i), fmt.Sprintf("Theme %d", i))
	}
	for i := range relations {
		vocabulary(out, fmt.Sprintf("rel-%d", i), fmt.Sprintf("Relation %d", i))
	}
	for _, id := range []string{"note", "homepage", "part", "whole"} {
		vocabulary(out, id, id)
	}
	for i := range n {
		reified := every > 0 && i%every == 0
		topic(out, random, i, reified)
		if reified {
			reifier(out, i)
		}
	}
	for i := range n {
		association(out, random, i, n)
		if i%2 == 1 {
			association(out, random, i, n)
		}
	}
	fmt.Fprint(out, "</topicMap>\n")
	return out.Flush()
}

func vocabulary(w io.Writer, id, name string) {
	fmt.Fprintf(w, `<topic id="%s">
 <subjectIdentity>
  <subjectIndicatorRef xlink:href="%s%s"/>
 </subjectIdentity>
 <baseName>
  <baseNameString>%s</baseNameString>
 </baseName>
</topic>
`, id, Base, id, name)
}

func topic(w io.Writer, random *rand.Rand, i int, reified bool) {
	id := ""
	if reified {
		id = fmt.Sprintf(` id="n%d"`, i)
	}
	fmt.Fprintf(w, `<topic id="t%d">
 <instanceOf>
  <topicRef xlink:href="#class-%d"/>
 </instanceOf>
 <subjectIdentity>
  <subjectIndicatorRef xlink:href="%st/%d"/>
 </subjectIdentity>
 <baseName%s>
  <baseNameString>Topic %d</baseNameString>
 </baseName>
 <baseName>
  <scope>
   <topicRef xlink:href="#theme-%d"/>
  </scope>
  <baseNameString>Thema Nr. %d</baseNameString>
 </baseName>
 <occurrence>
  <instanceOf>
   <topicRef xlink:href="#note"/>
  </instanceOf>
  <resourceData>About topic %d, %s.</resourceData>
 </occurrence>
 <occurrence>
  <instanceOf>
   <topicRef xlink:href="#homepage"/>
  </instanceOf>
  <resourceRef xlink:href="http://example.com/%d"/>
 </occurrence>
</topic>
`, i, random.IntN(classes), Base, i, id, i, random.IntN(themes), i, i, words[random.IntN(len(words))], i)
}

// reifier writes the topic that reifies the name of another.
func reifier(w io.Writer, i int) {
	fmt.Fprintf(w, `<topic id="r%d">
 <subjectIdentity>
  <subjectIndicatorRef xlink:href="#n%d"/>
  <subjectIndicatorRef xlink:href="%sr/%d"/>
 </subjectIdentity>
 <baseName>
  <baseNameString>Reifier %d</baseNameString>
 </baseName>
</topic>
`, i, i, Base, i, i)
}

func association(w io.Writer, random *rand.Rand, i, n int) {
	fmt.Fprintf(w, `<association>
<instanceOf>
<topicRef xlink:href="#rel-%d"/>
</instanceOf>
<member>
<roleSpec>
<topicRef xlink:href="#whole"/>
</roleSpec>
<topicRef xlink:href="#t%d"/>
</member>
<member>
<roleSpec>
<topicRef xlink:href="#part"/>
</roleSpec>
<topicRef xlink:href="#t%d"/>
</member>
</association>
`, random.IntN(relations), i, random.IntN(n))
}

var words = []string{"in few words", "as a catalogue would", "brief &amp; clear", "in Kürze, größtenteils", "à propos"}
