package scan_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/xml/scan"
)

func ExampleScanner() {
	const document = `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:x="http://www.w3.org/1999/xlink">
<topic id="oslo"><subjectIdentity><subjectIndicatorRef x:href="http://psi.example.org/oslo"/></subjectIdentity></topic>
</topicMap>`
	s := scan.NewScanner(strings.NewReader(document), scan.Options{URI: "oslo.xtm"})
	for {
		kind, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if kind != scan.StartElement || s.Name().Local != "subjectIndicatorRef" {
			continue
		}
		href, _ := s.Attr("http://www.w3.org/1999/xlink", "href")
		line, column := s.Position()
		fmt.Printf("%d:%d %s\n", line, column, href)
	}
	// Output: 2:35 http://psi.example.org/oslo
}
