package words

import (
	"testing"
	"time"

	"github.com/tmshare/tmshare/fragment"
	terms "github.com/tmshare/tmshare/internal/words"
)

// BenchmarkEntries finds the entries of a topic with two names; the reference is its stored form.
func BenchmarkEntries(b *testing.B) {
	topic := named("Topic 123456", "Thema Nr. 123456")
	topic.SubjectIdentifiers[0] = "http://psi.example.org/t/123456"
	for b.Loop() {
		Entries(topic)
	}
	_ = fragment.MarshalTopic
}

// BenchmarkListings finds the entries by which a concept with labels in two languages is listed; the reference is the
// rest of its entries.
func BenchmarkListings(b *testing.B) {
	concept := named("absorption spectroscopy", "absorptionsspektroskopi", "absorption")
	for i, tag := range []fragment.Ref{"en", "sv", "en"} {
		concept.Names[i].Scope = []fragment.Ref{terms.LanguageNamespace + tag}
	}
	var listed, rest time.Duration
	for b.Loop() {
		begin := time.Now()
		listings(concept)
		middle := time.Now()
		Entries(concept)
		listed, rest = listed+middle.Sub(begin), rest+time.Since(middle)
	}
	b.ReportMetric(float64(listed)/float64(rest), "x-of-the-words")
}
