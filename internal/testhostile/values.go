package testhostile

import "strings"

// Value is a value with its datatype, as a statement of a topic map may have it.
type Value struct{ Value, Datatype string }

const xsd = "http://www.w3.org/2001/XMLSchema#"

// Values are texts with datatypes: those that fit, and those that no document in XTM can have.
var Values = func() (all []Value) {
	long := strings.Repeat("b", 8191)
	for _, value := range []string{
		"", "b", "a\x01", "a\xffb", "\uFFFE", " \r\n\t", "<b>", "<b/>", "<b></b>", "a &amp; b", "&", "</resourceData>",
		strings.Repeat("<b>", 194) + strings.Repeat("</b>", 194), strings.Repeat("<b>", 198) + strings.Repeat("</b>", 198),
		`<b xmlns="x:` + long + `"></b>`, "<" + long + "></" + long + ">", "x:b", "X:b", "x:%7Eb", "x: b ", "x:" + long,
		"x:b\n", "relative",
	} {
		for _, datatype := range []string{
			xsd + "string", xsd + "anyType", xsd + "anyURI", "x:datatype", "X:datatype", "x:\x01", "relative", "x:" + long,
		} {
			all = append(all, Value{value, datatype})
		}
	}
	return all
}()
