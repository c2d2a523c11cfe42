package xtm_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// onCores runs f with so many cores. Documents are read ahead with two or more.
func onCores(n int, f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	f()
}

// longDocument is one of random topics and associations. A few things in it are wrong.
func longDocument(random *rand.Rand, pieces int) string {
	var doc strings.Builder
	doc.WriteString(head10)
	wrong := []string{
		"lost\n", "<nonsense/>", "<topic/>", "<!-- a comment -->",
		`<topic id="clash"><baseName id="n%[1]d"><baseNameString>a</baseNameString></baseName></topic>`,
		`<topic id="t%[1]d">text<baseName><instanceOf><topicRef xlink:href="#t"/></instanceOf><baseNameString>typed</baseNameString></baseName></topic>`,
		`<topic id="n%[1]d"/>`, `<mergeMap xlink:href="other%[1]d"/>`, `<mergeMap xlink:href="missing"/>`, "</topicMap>", "<topic",
	}
	left, names := random.IntN(6), 0
	for range pieces {
		switch i := random.IntN(pieces); {
		case left > 0 && random.IntN(pieces) < left:
			left--
			piece := wrong[random.IntN(len(wrong))]
			doc.WriteString(strings.ReplaceAll(piece, "%[1]d", fmt.Sprint(i)))
		case i%3 == 0:
			fmt.Fprintf(&doc, `<association><scope><topicRef xlink:href="#t%d"/></scope>`, i%7)
			for range 1 + random.IntN(3) {
				fmt.Fprintf(&doc, `<member><topicRef xlink:href="#t%d"/></member>`, random.IntN(pieces))
			}
			doc.WriteString("</association>\n")
		default:
			fmt.Fprintf(&doc, `<topic id="t%d">`, i)
			if i%50 == 0 { // a reifier
				fmt.Fprintf(&doc, `<subjectIdentity><subjectIndicatorRef xlink:href="#n%d"/></subjectIdentity>`, random.IntN(pieces))
			}
			for range random.IntN(5) {
				fmt.Fprintf(&doc, `<baseName id="n%d"><scope><topicRef xlink:href="#t%d"/></scope><baseNameString>Name %d</baseNameString></baseName>`, names, i%5, i)
				names++
			}
			doc.WriteString("</topic>\n")
		}
	}
	doc.WriteString(foot)
	return doc.String()
}

// outcome is all that reading a document brings, in its order.
func outcome(t *testing.T, doc string, o xtm.Options) string {
	var log strings.Builder
	tell := func(what string) func(*xtm.SyntaxError) {
		return func(e *xtm.SyntaxError) { fmt.Fprintln(&log, what, e, e.Rule) }
	}
	o.Tolerated = tell("tolerated")
	if o.Problem != nil {
		o.Problem = tell("problem")
	}
	o.FoundVersion = func(v xtm.Version) { fmt.Fprintln(&log, v) }
	o.Loader = func(l tmdm.Locator) (io.ReadCloser, error) {
		fmt.Fprintln(&log, "load", l)
		if strings.HasSuffix(string(l), "missing") {
			return nil, errors.New("it is not there")
		}
		return io.NopCloser(strings.NewReader(longDocument(rand.New(rand.NewPCG(1, uint64(len(l)))), 300))), nil
	}
	tm, err := read(doc, o)
	fmt.Fprintln(&log, err)
	if err == nil {
		log.WriteString(canonical(t, tm, cxtm.Options{Base: fuzzBase}))
	}
	return log.String()
}

// Reading ahead has the same result: the map, the errors, and the order of the reports.
func TestReadingAheadComesToTheSame(t *testing.T) {
	for round := range testenv.Rounds(40, 1000) {
		doc := longDocument(testenv.Rand(uint64(round)), 2500)
		for name, o := range map[string]xtm.Options{
			"strict":   {},
			"lenient":  {Lenient: true},
			"problems": {Problem: func(*xtm.SyntaxError) {}},
			"little":   {Limits: xtm.Limits{Memory: 400_000}},
		} {
			var one, two string
			onCores(1, func() { one = outcome(t, doc, o) })
			onCores(2, func() { two = outcome(t, doc, o) })
			if one != two {
				require.Equal(t, one, two, "round %d, %s", round, name)
			}
		}
	}
}

// topicsFrom is a document of topics without end, each made by piece of its number.
type topicsFrom struct {
	piece    func(i int) string
	rest     string
	i        int
	returned bool // from Read: the consumer may stop
}

func (d *topicsFrom) Read(p []byte) (int, error) {
	if d.returned {
		panic("the document is read although no consumer waits for it")
	}
	if d.rest == "" {
		if d.rest = head10; d.i > 0 {
			d.rest = d.piece(d.i)
		}
		d.i++
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// An error of the builder ends the reading of a document that goes on, before Read returns.
func TestReadingAheadEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	onCores(2, func() {
		d := &topicsFrom{piece: func(i int) string {
			if i == 5000 { // as a name has this identifier
				return `<topic id="n3000"/>`
			}
			return fmt.Sprintf(`<topic id="t%d"><baseName id="n%d"><baseNameString>a</baseNameString></baseName></topic>`, i, i)
		}}
		_, err := xtm.Read(t.Context(), d, xtm.Options{Base: fuzzBase})
		d.returned = true
		assert.ErrorContains(t, err, `#n3000 identifies name "a" of topic http://example.org/map.xtm#t3000, so it cannot identify a topic`)
		assert.Less(t, d.i, 20_000, "topics read")
	})
	testenv.Eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}

// An element that never ends is reported as it is read, so reports do not pile up.
func TestWarningsOfOneElementAreToldWhileItIsRead(t *testing.T) {
	onCores(2, func() {
		broken := errors.New("the line is broken")
		warnings, end := 0, make(chan struct{})
		d := &topicsFrom{piece: func(i int) string {
			if i < 5000 {
				return fmt.Sprintf(`<topic id="t%d"/>`, i)
			}
			if i == 5000 {
				return `<topic id="t">`
			}
			return "text<instanceOf><topicRef xlink:href='#t'/></instanceOf>"
		}}
		_, err := xtm.Read(t.Context(), readerFunc(func(p []byte) (int, error) {
			select {
			case <-end:
				return 0, broken
			default:
				return d.Read(p)
			}
		}), xtm.Options{Base: fuzzBase, Lenient: true, Tolerated: func(*xtm.SyntaxError) {
			if warnings++; warnings == 10_000 {
				close(end)
			}
		}})
		assert.ErrorIs(t, err, broken)
		assert.GreaterOrEqual(t, warnings, 10_000)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// The caller of Read can recover from a panic of the document.
func TestPanicWhileReadingAhead(t *testing.T) {
	onCores(2, func() {
		d := &topicsFrom{piece: func(i int) string {
			if i == 20_000 {
				panic("the document does")
			}
			return fmt.Sprintf(`<topic id="t%d"/>`, i)
		}}
		defer func() { assert.Contains(t, recover(), "the document does, in a goroutine that works ahead") }()
		_, _ = xtm.Read(t.Context(), d, xtm.Options{Base: fuzzBase})
	})
}
