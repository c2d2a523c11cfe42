package tmdm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Read a document, find a topic, say something about it, and write the map.
func Example() {
	const document = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
  <topic><subjectIdentifier href="http://example.org/oslo"/>
    <name><value>Oslo</value></name>
  </topic>
</topicMap>`
	tm, err := xtm.Read(context.Background(), strings.NewReader(document), xtm.Options{Base: "http://example.org/cities.xtm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	oslo := tm.TopicBySubjectIdentifier("http://example.org/oslo")
	if oslo == nil {
		fmt.Println("no such topic")
		return
	}
	latin := tm.CreateTopicBySubjectIdentifier("http://example.org/latin")
	oslo.AddName("Asloia", nil, latin)
	tm.Normalize(context.Background()) // the occurrence may exist already
	if _, err := xtm.Write(os.Stdout, tm, xtm.WriteOptions{Base: "http://example.org/cities.xtm"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
	//   <topic>
	//     <subjectIdentifier href="http://example.org/oslo"/>
	//     <name>
	//       <value>Oslo</value>
	//     </name>
	//     <name>
	//       <scope>
	//         <subjectIdentifierRef href="http://example.org/latin"/>
	//       </scope>
	//       <value>Asloia</value>
	//     </name>
	//   </topic>
	//   <topic>
	//     <subjectIdentifier href="http://psi.topicmaps.org/iso13250/model/topic-name"/>
	//   </topic>
	//   <topic>
	//     <subjectIdentifier href="http://example.org/latin"/>
	//   </topic>
	// </topicMap>
}

func ExampleTopicMap() {
	tm := tmdm.New()
	city := tm.CreateTopicBySubjectIdentifier("http://example.org/city")
	tm.CreateTopicBySubjectIdentifier("http://example.org/oslo").AddType(city)
	tm.CreateTopicBySubjectIdentifier("http://example.org/bergen").AddType(city)

	oslo := tm.TopicBySubjectIdentifier("http://example.org/oslo")
	oslo.AddName("Oslo", nil)
	norwegian := tm.CreateTopicBySubjectIdentifier("http://example.org/norwegian")
	oslo.AddName("Christiania", nil, norwegian)

	for topic := range tm.Topics() {
		for class := range topic.Types() {
			fmt.Println(topic.SubjectIdentifiers()[0], "is a", class.SubjectIdentifiers()[0])
		}
		for _, name := range topic.Names() {
			fmt.Printf("  %s, in a scope of %d themes\n", name.Value(), len(name.Scope().Themes()))
		}
	}
	// Output:
	// http://example.org/oslo is a http://example.org/city
	//   Oslo, in a scope of 0 themes
	//   Christiania, in a scope of 1 themes
	// http://example.org/bergen is a http://example.org/city
}

// Two topics turn out to be one, and their equal statements are joined.
func ExampleTopic_Merge() {
	tm := tmdm.New()
	oslo := tm.CreateTopicBySubjectIdentifier("http://example.org/oslo")
	oslo.AddName("Oslo", nil)
	capital := tm.CreateTopicBySubjectIdentifier("http://example.org/capital-of-norway")
	capital.AddName("Oslo", nil)

	err := capital.AddSubjectIdentifier("http://example.org/oslo")
	fmt.Println(err)
	var identity *tmdm.IdentityError
	if errors.As(err, &identity) {
		if existing, ok := identity.Existing.(*tmdm.Topic); ok {
			err = existing.Merge(capital)
		}
	}
	fmt.Println(err, len(oslo.Names()))
	tm.Normalize(context.Background())
	fmt.Println(oslo.SubjectIdentifiers(), len(oslo.Names()))
	// Output:
	// topic http://example.org/capital-of-norway cannot have the identifier http://example.org/oslo: it identifies topic http://example.org/oslo
	// <nil> 2
	// [http://example.org/oslo http://example.org/capital-of-norway] 1
}

// A city is a settlement, so a subject in a city is in a settlement.
func ExampleTopic_IsInstanceOf() {
	tm := tmdm.New()
	topic := func(name string) *tmdm.Topic {
		return tm.CreateTopicBySubjectIdentifier(tmdm.Locator("http://example.org/" + name))
	}
	city, settlement, oslo := topic("city"), topic("settlement"), topic("oslo")
	city.AddSupertype(settlement)
	oslo.AddType(city)
	topic("utne").AddType(settlement)

	fmt.Println(oslo.IsInstanceOf(settlement), oslo.IsInstanceOf(oslo))
	for class := range oslo.AllTypes() {
		fmt.Println(class.SubjectIdentifiers()[0])
	}
	fmt.Println("settlements:")
	for instance := range settlement.AllInstances() {
		fmt.Println(instance.SubjectIdentifiers()[0])
	}
	// Output:
	// true false
	// http://example.org/city
	// http://example.org/settlement
	// settlements:
	// http://example.org/utne
	// http://example.org/oslo
}

// From a person to what she wrote: along a role of hers to the other one.
func ExampleTopic_RolesPlayedByType() {
	tm := tmdm.New()
	topic := func(name string) *tmdm.Topic {
		t := tm.CreateTopicBySubjectIdentifier(tmdm.Locator("http://example.org/" + name))
		t.AddName(name, nil)
		return t
	}
	undset, authorship, author, work := topic("Sigrid Undset"), topic("authorship"), topic("author"), topic("work")
	for _, title := range []string{"Jenny", "Kristin Lavransdatter"} {
		a := tm.CreateAssociation(authorship)
		a.AddRole(author, undset)
		a.AddRole(work, topic(title))
	}
	for r := range undset.RolesPlayedByType(author, authorship) {
		for other := range r.Others() {
			fmt.Println(other.Player().DisplayName().Value())
		}
	}
	// Output:
	// Jenny
	// Kristin Lavransdatter
}

// The name in the reader's language, or else one that holds everywhere.
func ExampleTopic_DisplayName() {
	tm := tmdm.New()
	danish := tm.CreateTopicBySubjectIdentifier("http://www.topicmaps.org/xtm/1.0/language.xtm#da")
	copenhagen := tm.CreateTopicBySubjectIdentifier("http://example.org/copenhagen")
	copenhagen.AddName("Copenhagen", nil)
	copenhagen.AddName("København", nil, danish)
	fmt.Println(copenhagen.DisplayName().Value())
	fmt.Println(copenhagen.DisplayName("da").Value())
	fmt.Println(copenhagen.DisplayName("nb").Value())
	// Output:
	// Copenhagen
	// København
	// Copenhagen
}

// A walk finds items of all kinds, and Parent returns their owners.
func ExampleParent() {
	tm := tmdm.New()
	norway := tm.CreateTopicBySubjectIdentifier("http://example.org/norway")
	norway.AddOccurrence("https://www.norge.no/", tmdm.XSDAnyURI, tm.CreateTopicBySubjectIdentifier("http://example.org/homepage"))
	for c := range tm.Constructs() {
		if o, ok := c.(*tmdm.Occurrence); ok && o.Value() == "https://www.norge.no/" {
			fmt.Println(tmdm.Describe(tmdm.Parent(o)))
		}
	}
	// Output:
	// topic http://example.org/norway
}

// The error for an identifier that is taken has the item with that identifier. Two topics are merged; anything else
// cannot be a topic.
func ExampleIdentityError() {
	tm := tmdm.New()
	oslo := tm.CreateTopicBySubjectIdentifier("http://example.org/oslo")
	capital := tm.CreateTopicBySubjectIdentifier("http://example.org/capital")
	name := oslo.AddName("Oslo", nil)
	if err := tmdm.AddItemIdentifier(name, "http://example.org/cities.xtm#name1"); err != nil {
		fmt.Println(err)
	}
	for _, locator := range []tmdm.Locator{"http://example.org/oslo", "http://example.org/cities.xtm#name1"} {
		err := tmdm.AddItemIdentifier(capital, locator)
		var taken *tmdm.IdentityError
		if !errors.As(err, &taken) {
			fmt.Println("free:", err)
			continue
		}
		switch existing := taken.Existing.(type) {
		case *tmdm.Topic:
			fmt.Println("the same as", tmdm.Describe(existing), existing.Merge(capital))
		default:
			fmt.Println("taken by", tmdm.Describe(existing))
		}
	}
	// Output:
	// the same as topic http://example.org/oslo <nil>
	// taken by name "Oslo" of topic http://example.org/oslo
}
