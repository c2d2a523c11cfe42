package words

import (
	"testing"

	"github.com/tmshare/tmshare/fragment"
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
