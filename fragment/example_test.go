package fragment_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// The publisher's side: two versions of a map, what changed between them, and the
// document of each entry that is to be published.
func Example() {
	const prefix = "http://maps.example.org/cities/"
	version := func(topics string, prior fragment.Source) *fragment.Map {
		tm, err := xtm.Read(context.Background(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`+topics+`</topicMap>`), xtm.Options{Base: prefix})
		if err != nil {
			panic(err)
		}
		m, err := fragment.NameTopics(context.Background(), tm, prefix, prior)
		if err != nil {
			panic(err)
		}
		return m
	}
	first := version(`<topic id="oslo"><name><value>Christiania</value></name></topic><topic id="bergen"/>`, nil)
	second := version(`<topic id="oslo"><name><value>Oslo</value></name></topic>`, first)

	change, err := fragment.Diff(context.Background(), first, second)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, entry := range change.Entries {
		fmt.Println(entry.TopicSI, "deleted:", entry.Deleted)
	}
	form := fragment.Form{Version: xtm.V21, SP: prefix}
	if err := change.Entries[1].Write(os.Stdout, second, form); err != nil {
		fmt.Println(err)
	}
	// Output:
	// http://maps.example.org/cities/topic/bergen deleted: true
	// http://maps.example.org/cities/topic/oslo deleted: false
	// <?xml version="1.0" encoding="UTF-8"?>
	// <topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
	//   <topic>
	//     <subjectIdentifier href="http://maps.example.org/cities/topic/oslo"/>
	//     <name>
	//       <value>Oslo</value>
	//     </name>
	//   </topic>
	//   <topic>
	//     <subjectIdentifier href="http://psi.topicmaps.org/iso13250/model/topic-name"/>
	//   </topic>
	// </topicMap>
}

// A source's statements about one topic, in words.
func ExampleDescribe() {
	tm := tmdm.New()
	oslo := tm.CreateTopicBySubjectIdentifier("http://psi.example.org/oslo")
	oslo.AddName("Oslo", nil)
	oslo.AddType(tm.CreateTopicBySubjectIdentifier("http://psi.example.org/city"))
	m, err := fragment.NewMap(tm, "http://maps.example.org/cities/")
	if err != nil {
		fmt.Println(err)
		return
	}
	statements, err := fragment.Describe(m, "http://psi.example.org/oslo")
	fmt.Println(strings.Join(statements, "\n"), err)
	// Output:
	// subject identifier http://psi.example.org/oslo
	// name "Oslo"
	// instance of http://psi.example.org/city <nil>
}
