package xtm_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const cities = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
  <topic id="oslo">
    <subjectIdentifier href="http://psi.example.org/oslo"/>
    <instanceOf><topicRef href="#city"/></instanceOf>
    <name><value>Oslo</value></name>
    <name><type><topicRef href="#former"/></type><value>Christiania</value></name>
  </topic>
  <topic id="city"><name><value>City</value></name></topic>
</topicMap>`

// A document becomes a topic map. References by ids become item identifiers on the base.
func ExampleRead() {
	tm, err := xtm.Read(context.Background(), strings.NewReader(cities), xtm.Options{Base: "http://example.org/cities.xtm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	oslo := tm.TopicBySubjectIdentifier("http://psi.example.org/oslo")
	for class := range oslo.Types() {
		fmt.Println(oslo.DisplayName().Value(), "is a", class.DisplayName().Value())
	}
	former, _ := tm.ConstructByItemIdentifier("http://example.org/cities.xtm#former").(*tmdm.Topic)
	for name := range oslo.NamesByType(former) {
		fmt.Println("formerly", name.Value())
	}
	// Output:
	// Oslo is a City
	// formerly Christiania
}

// All problems of a document, each with its place, rather than the first one.
func ExampleRead_problems() {
	const broken = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
  <topic id="a"><name/></topic>
  <topic/>
  <topic id="c"><name><value>C</value></name></topic>
</topicMap>`
	tm, err := xtm.Read(context.Background(), strings.NewReader(broken), xtm.Options{
		Base:    "http://example.org/broken.xtm",
		Problem: func(e *xtm.SyntaxError) { fmt.Printf("%d:%d: %s\n", e.Line, e.Column, e.Reason) },
	})
	fmt.Println(err, "topics read:", len(collect(tm)))
	// Output:
	// 2:17: <name> has no <value>
	// 3:3: <topic> has neither an id nor <itemIdentity>, <subjectIdentifier> or <subjectLocator>
	// <nil> topics read: 2
}

func collect(tm *tmdm.TopicMap) (topics []*tmdm.Topic) {
	for t := range tm.Topics() {
		topics = append(topics, t)
	}
	return topics
}

// A map is written as XTM 2.1, which carries all of it, or in an older version; then Write returns the losses.
func ExampleWrite() {
	tm := tmdm.New()
	oslo := tm.CreateTopicBySubjectIdentifier("http://psi.example.org/oslo")
	oslo.AddName("Christiania", tm.CreateTopicBySubjectIdentifier("http://psi.example.org/former"))

	losses, err := xtm.Write(io.Discard, tm, xtm.WriteOptions{Version: xtm.V10})
	fmt.Println(err, "types of names that XTM 1.0 cannot carry:", losses.NameTypes)
	if _, err := xtm.Write(os.Stdout, tm, xtm.WriteOptions{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <nil> types of names that XTM 1.0 cannot carry: 1
	// <?xml version="1.0" encoding="UTF-8"?>
	// <topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
	//   <topic>
	//     <subjectIdentifier href="http://psi.example.org/oslo"/>
	//     <name>
	//       <type>
	//         <subjectIdentifierRef href="http://psi.example.org/former"/>
	//       </type>
	//       <value>Christiania</value>
	//     </name>
	//   </topic>
	//   <topic>
	//     <subjectIdentifier href="http://psi.example.org/former"/>
	//   </topic>
	// </topicMap>
}

// A locator that is not in normal form would come back as another one.
func ExampleEncodeError() {
	tm := tmdm.New()
	tm.CreateTopicBySubjectIdentifier("HTTP://psi.example.org/%7Eoslo")
	_, err := xtm.Write(io.Discard, tm, xtm.WriteOptions{})
	fmt.Println(err)
	fmt.Println(tmdm.ParseLocator("HTTP://psi.example.org/%7Eoslo"))
	// Output:
	// the locator "HTTP://psi.example.org/%7Eoslo": readers would take it for "http://psi.example.org/~oslo", its normal form; tmdm.ParseLocator makes that
	// http://psi.example.org/~oslo <nil>
}

// Documents of any size are read and written element by element.
func ExampleDecoder() {
	var out bytes.Buffer
	const base = "http://example.org/cities.xtm"
	d := xtm.NewDecoder(strings.NewReader(cities), xtm.Options{Base: base})
	e := xtm.NewEncoder(&out, xtm.V10, base)
	for {
		element, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if t, ok := element.(*xtm.Topic); ok {
			fmt.Println(t.ItemIdentifiers[0], "names:", len(t.Names))
			if err := e.Topic(t); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	fmt.Println(e.Close(), strings.Count(out.String(), "<baseName>"))
	// Output:
	// http://example.org/cities.xtm#oslo names: 2
	// http://example.org/cities.xtm#city names: 1
	// <nil> 3
}
