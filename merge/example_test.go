package merge_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// The subscriber applies the fragment of an entry to the earlier state of the source.
func ExampleApply() {
	const prefix = "http://maps.example.org/cities/"
	state := &merge.Memory{}
	apply := func(topicSI fragment.Ref, body string, deleted bool) {
		f, err := fragment.Read(context.Background(), strings.NewReader(xtm21(body)), xtm.Options{Base: prefix}, topicSI)
		if err != nil {
			fmt.Println(err)
			return
		}
		f.Deleted = deleted // the feed announces it: a topic may be bare and alive
		if err := merge.Apply(state, f); err != nil {
			fmt.Println(err)
		}
	}
	show := func() {
		for t, err := range state.Topics() {
			if err == nil && !t.Provisional {
				fmt.Println(t.TopicSI(), t.Title())
			}
		}
	}
	apply("http://psi.example.org/oslo", `<topic><subjectIdentifier href="http://psi.example.org/oslo"/><name><value>Christiania</value></name></topic>`, false)
	apply("http://psi.example.org/oslo", `<topic><subjectIdentifier href="http://psi.example.org/oslo"/><name><value>Oslo</value></name></topic>`, false)
	show()
	apply("http://psi.example.org/oslo", `<topic><subjectIdentifier href="http://psi.example.org/oslo"/></topic>`, true)
	fmt.Println("deleted:")
	show()
	// Output:
	// http://psi.example.org/oslo Oslo
	// deleted:
}

// Two sources that know a topic by the same identifier are seen as one map.
// Each goes on as it was.
func ExampleJoin() {
	source := func(sp, body string) merge.Part {
		m, err := fragment.ReadSnapshot(context.Background(), strings.NewReader(xtm21(body)), xtm.Options{Base: "http://maps.example.org/"})
		if err != nil {
			panic(err)
		}
		return merge.Part{SP: sp, Source: m}
	}
	tm, conflicts, err := merge.Join(context.Background(),
		source("http://maps.example.org/", `<topic><subjectIdentifier href="http://psi.example.org/oslo"/><name><value>Oslo</value></name></topic>`),
		source("http://library.example.org/", `<topic><subjectIdentifier href="http://psi.example.org/oslo"/><subjectIdentifier href="http://www.wikidata.org/entity/Q585"/><name><value>Christiania</value></name></topic>`),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range tm.TopicBySubjectIdentifier("http://www.wikidata.org/entity/Q585").Names() {
		fmt.Println(name.Value())
	}
	fmt.Println("conflicts:", len(conflicts))
	// Output:
	// Christiania
	// Oslo
	// conflicts: 0
}

func xtm21(body string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + body + `</topicMap>`
}
