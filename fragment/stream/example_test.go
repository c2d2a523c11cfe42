package stream_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/xtm"
)

func ExampleSnapshot() {
	const document = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
		<topic><subjectIdentifier href="http://example.org/oslo"/>
			<instanceOf><subjectIdentifierRef href="http://example.org/city"/></instanceOf></topic>
	</topicMap>`
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(document)), nil }
	for record, err := range stream.Snapshot(open, xtm.Options{Base: "http://maps.example.org/cities/"}) {
		switch {
		case err != nil:
			fmt.Println(err)
		case record.Topic != nil:
			fmt.Println("topic", record.Topic.TopicSI())
		default:
			fmt.Println("association of", record.Association.Players())
		}
	}
	// Output:
	// topic http://example.org/oslo
	// association of [http://example.org/city http://example.org/oslo]
	// topic http://example.org/city
	// topic http://psi.topicmaps.org/iso13250/model/type-instance
	// topic http://psi.topicmaps.org/iso13250/model/type
	// topic http://psi.topicmaps.org/iso13250/model/instance
}
