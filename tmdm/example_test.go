package tmdm_test

import (
	"errors"
	"fmt"

	"github.com/tmshare/tmshare/tmdm"
)

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

// Two topics turn out to be one, and what they say twice is joined.
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
	tm.Normalize()
	fmt.Println(oslo.SubjectIdentifiers(), len(oslo.Names()))
	// Output:
	// tmdm: topic http://example.org/capital-of-norway cannot have the identifier http://example.org/oslo: it identifies topic http://example.org/oslo
	// <nil> 2
	// [http://example.org/oslo http://example.org/capital-of-norway] 1
}
