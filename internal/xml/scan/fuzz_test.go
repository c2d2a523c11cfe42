package scan

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// FuzzScan: no document makes the scanner panic; the size of the buffer makes no
// difference; and where encoding/xml accepts a document too, which it can only
// do without a DTD, both see the same names and the same text.
func FuzzScan(f *testing.F) {
	f.Add([]byte(rich), true)
	f.Add(topicMap(1), false)
	f.Add([]byte("\uFEFF<?xml version='1.0' encoding='UTF-8'?><a/>"), false)
	f.Add([]byte("<?xml version='1.0' encoding='Shift_JIS'?><a>\x93\xfa</a>"), false)
	f.Add([]byte("<?xml version='1.0' encoding='ISO-8859-1'?><a b='\xe9'>\xe9&#233;</a>"), false)
	f.Add([]byte("\xFF\xFE<\x00a\x00>\x00\x3d\xd8\x00\xde<\x00/\x00a\x00>\x00"), false)
	f.Add([]byte("<?xml version='1.0' encoding='UTF-7'?><a>+ADw-b/+AD4-</a>"), false)
	f.Add([]byte("<?xml version='1.0' encoding='UTF-16'?><a>\xe9</a>"), false)
	f.Add([]byte("\xFF\xFE<?xml version='1.0' encoding='x-none'?><a/>"), false)
	f.Add([]byte("<!DOCTYPE a ["+laughs("ha", 3)+"]><a b='&e2;'>&e3;</a>"), true)
	f.Add([]byte("<!DOCTYPE a [<!ENTITY % p \"<!ATTLIST a b NMTOKENS ' x  y '>\">%p;%q;<!ELEMENT a (b|(c,d)*)?>]><a/>"), true)
	f.Add([]byte("<a xmlns='u' xmlns:p='v'><p:b p:c='&lt;' xml:lang=\"en\"><![CDATA[]]]]>]]&gt;</p:b></a>"), false)
	f.Add([]byte("<a xmlns:p='urn:\n'><p:b/></a>"), false)
	for _, amplifying := range amplifying() {
		f.Add([]byte(amplifying), false)
	}
	f.Fuzz(func(t *testing.T, document []byte, misc bool) {
		o := Options{Misc: misc, SkipUnread: misc, BufferSize: 32, Limits: Limits{Depth: 50, Expansion: 10_000}}
		if size := contentSize(document, o); size > 10_000+(1+1)*3*len(document) { // 3: the length of a byte in UTF-8
			t.Fatalf("%d bytes of content are made of %d", size, len(document))
		}
		small := trace(bytes.NewReader(document), o)
		o.BufferSize = 4096
		if large := trace(bytes.NewReader(document), o); small != large {
			assert.Equal(t, small, large)
		}
		compareWithStandard(t, document)
	})
}

// amplifying returns documents in which something is written once and meant often.
func amplifying() []string {
	long := strings.Repeat("x", 3000)
	return []string{
		`<a xmlns:p="urn:` + long + `">` + strings.Repeat("<p:b p:c=''/>", 20) + "</a>",
		"<!DOCTYPE a [<!ENTITY e '" + long + "'>]><a>" + strings.Repeat("&e;", 20) + "</a>",
		"<!DOCTYPE a [<!ENTITY e '" + long + "'>]><a b='" + strings.Repeat("&e;", 20) + "'/>",
		"<!DOCTYPE a [<!ATTLIST b c CDATA '" + long + "'>]><a>" + strings.Repeat("<b/>", 20) + "</a>",
		"<!DOCTYPE a [<!ENTITY e '" + long + "'><!ATTLIST b c CDATA '&e;&e;'>]><a>" + strings.Repeat("<b/>", 20) + "</a>",
		"<!DOCTYPE a [<!ATTLIST b xmlns:p CDATA 'urn:" + long + "'>]><a>" + strings.Repeat("<b><p:c/></b>", 20) + "</a>",
	}
}

// contentSize returns how many bytes of text and of attributes a document has, up to its end or
// its first error.
func contentSize(document []byte, o Options) (n int) {
	for s := NewScanner(bytes.NewReader(document), o); ; {
		switch kind, err := s.Next(); {
		case err != nil:
			return n
		case kind == Text:
			n += len(s.Text())
		case kind == StartElement:
			for _, a := range s.Attrs() {
				n += len(a.Value)
			}
		}
	}
}

// A seed that no limit stops would show nothing.
func TestAmplifyingDocumentsExceedLimits(t *testing.T) {
	for _, document := range amplifying()[1:] { // names of namespaces are not copied
		s := NewScanner(strings.NewReader(document), Options{Limits: Limits{Expansion: 10_000}})
		err := error(nil)
		for err == nil {
			_, err = s.Next()
		}
		assert.ErrorContains(t, err, "10000", document[:60])
	}
}

func compareWithStandard(t *testing.T, document []byte) {
	ours, err := outline(document)
	if err != nil {
		return
	}
	theirs, ok := standardOutline(document)
	if ok && !slices.Equal(ours, theirs) {
		assert.Equal(t, theirs, ours, "%q", document)
	}
}

// outline returns the names and texts of a document, without DTD.
func outline(document []byte) (all []string, err error) {
	for s := NewScanner(bytes.NewReader(document), Options{NoDTD: true}); ; {
		kind, err := s.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		switch kind {
		case StartElement:
			all = append(all, "<"+s.Name().Space+" "+s.Name().Local)
			for _, a := range s.Attrs() {
				all = append(all, fmt.Sprintf("%s %s %q", a.Space, a.Local, a.Value))
			}
		case EndElement:
			all = append(all, ">")
		case Text:
			all = append(all, fmt.Sprintf("%q", s.Text()))
		}
	}
}

func standardOutline(document []byte) (all []string, ok bool) {
	text, depth := "", 0
	flush := func() {
		if text != "" {
			all = append(all, fmt.Sprintf("%q", text))
		}
		text = ""
	}
	for d := xml.NewDecoder(bytes.NewReader(document)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return all, true
		}
		if err != nil {
			return nil, false
		}
		switch token := token.(type) {
		case xml.StartElement:
			flush()
			depth++
			all = append(all, "<"+token.Name.Space+" "+token.Name.Local)
			for _, a := range token.Attr {
				if strings.ContainsAny(a.Value, "\t\n\r") {
					return nil, false // it does not normalise, so references cannot be distinguished from the rest
				}
				if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
					continue
				}
				all = append(all, fmt.Sprintf("%s %s %q", a.Name.Space, a.Name.Local, a.Value))
			}
		case xml.EndElement:
			flush()
			depth--
			all = append(all, ">")
		case xml.CharData:
			if depth > 0 {
				text += string(token)
			}
		}
	}
}

func TestAgreesWithTheStandardLibrary(t *testing.T) {
	for _, c := range conformanceSuite(t) {
		compareWithStandard(t, c.document)
	}
	ours, err := outline(topicMap(200))
	assert.NoError(t, err)
	theirs, ok := standardOutline(topicMap(200))
	assert.True(t, ok)
	assert.Equal(t, theirs, ours)
}
