package patch

import (
	"errors"
	"fmt"
	"strings"
)

// errMixed is the error for an element with other content than elements and white space.
var errMixed = errors.New("an element has more than elements in it")

// document is a document in pieces, which together are all of it.
type document struct{ prolog, root, epilog string }

// parse parses a document in UTF-8. It refuses a DTD, because that may change the meaning of the document.
func parse(s string) (document, error) {
	at := 0
	for at < len(s) {
		i := strings.IndexByte(s[at:], '<')
		if i < 0 {
			break
		}
		if at += i; !strings.HasPrefix(s[at:], "<?") && !strings.HasPrefix(s[at:], "<!--") {
			end, err := rootEnd(s, at)
			d := document{s[:at], s[at:end], s[end:]}
			if err == nil && !isUTF8(d.prolog) {
				err = errors.New("the document is in another encoding than UTF-8")
			}
			return d, err
		}
		var err error
		if at, err = skip(s, at); err != nil {
			return document{}, err
		}
	}
	return document{}, errors.New("the document has no root element")
}

// rootEnd returns the index after the root element that begins at an index. It does not check the content.
func rootEnd(s string, at int) (int, error) {
	end, err := tagEnd(s, at)
	if err != nil || s[at+1] == '!' || s[end-2] == '/' {
		return elementEnd(s, at)
	}
	last := strings.LastIndex(s, "</")
	if last < end {
		return at, errors.New("the document has no end")
	}
	return tagEnd(s, last)
}

// isUTF8 reports whether the XML declaration, if any, names no other encoding.
func isUTF8(prolog string) bool {
	declaration, _, _ := strings.Cut(prolog, "?>")
	_, encoding, named := strings.Cut(declaration, "encoding")
	return !named || !strings.HasPrefix(prolog, "<?xml") ||
		strings.EqualFold(strings.Trim(encoding, "= \t\r\n\"'"), "utf-8")
}

// skip returns the index after the comment, the processing instruction or the CDATA section at an index.
func skip(s string, at int) (int, error) {
	for _, kind := range [...][2]string{{"<!--", "-->"}, {"<?", "?>"}, {"<![CDATA[", "]]>"}} {
		if strings.HasPrefix(s[at:], kind[0]) {
			from := at + len(kind[0])
			if i := strings.Index(s[from:], kind[1]); i >= 0 {
				return from + i + len(kind[1]), nil
			}
			return at, fmt.Errorf("%s has no end", kind[0])
		}
	}
	return at, errors.New("there is a declaration, which is not supported")
}

// tagEnd returns the index after the tag at an index.
func tagEnd(s string, at int) (int, error) {
	for from := at + 1; ; {
		i := strings.IndexByte(s[from:], '>')
		if i < 0 {
			return at, errors.New("a tag has no end")
		}
		// Values of attributes may have a > in them.
		for end := from + i; ; {
			quote := strings.IndexByte(s[from:end], '"')
			if other := strings.IndexByte(s[from:end], '\''); other >= 0 && (quote < 0 || other < quote) {
				quote = other
			}
			if quote < 0 {
				return end + 1, nil
			}
			behind := from + quote + 1
			closing := strings.IndexByte(s[behind:], s[behind-1])
			if closing < 0 {
				return at, errors.New("a tag has no end")
			}
			if from = behind + closing + 1; from > end {
				break
			}
		}
	}
}

// elementEnd returns the index after the element at an index.
func elementEnd(s string, at int) (int, error) {
	for depth := 0; ; {
		end, err := at, error(nil)
		switch next := s[at+1:]; {
		case next == "":
			return at, errors.New("a tag has no end")
		case next[0] == '!' || next[0] == '?':
			end, err = skip(s, at)
		default:
			if end, err = tagEnd(s, at); err != nil {
				break
			}
			if next[0] == '/' {
				depth--
			} else if s[end-2] != '/' {
				depth++
			}
		}
		if err != nil || depth < 0 {
			return at, errors.Join(err, errors.New("an element has no end"))
		}
		if depth == 0 {
			return end, nil
		}
		i := strings.IndexByte(s[end:], '<')
		if i < 0 {
			return at, errors.New("an element has no end")
		}
		at = end + i
	}
}

// child is a child element with the white space after it.
type child struct {
	all     string
	element int // length of the element
}

func (c child) raw() string  { return c.all[:c.element] }
func (c child) tail() string { return c.all[c.element:] }

// content is an element in parts: its tag with the white space after it, its child elements, its end tag.
type content struct {
	open     string
	tag      int // length of the tag
	children []child
	end      string
}

// split takes an element apart. It is errMixed where the element has other things in it than
// elements and white space.
func split(element string) (*content, error) {
	at, err := tagEnd(element, 0)
	if err != nil {
		return nil, err
	}
	if element[at-2] == '/' {
		return nil, errMixed // nothing can be inserted into it
	}
	last := strings.LastIndex(element, "</")
	if last < at {
		return nil, errors.New("an element has no end")
	}
	c := &content{tag: at, end: element[last:]}
	c.children, at, err = children(element[:last], at)
	c.open = element[:at]
	return c, err
}

// children returns the elements from a place on, up to the end, and where the first begins.
func children(s string, at int) (all []child, first int, err error) {
	if at, err = space(s, at); err != nil {
		return nil, at, err
	}
	for first = at; at < len(s); {
		if at+1 < len(s) && s[at+1] == '/' {
			return nil, first, errors.New("there is an end of an element that has not begun")
		}
		end, err := elementEnd(s, at)
		if err != nil {
			return nil, first, err
		}
		next, err := space(s, end)
		if err != nil {
			return nil, first, err
		}
		all = append(all, child{s[at:next], end - at})
		at = next
	}
	return all, first, nil
}

// space returns the index after white space: the begin of an element, or the end of s.
func space(s string, at int) (int, error) {
	for at < len(s) && (s[at] == '\n' || s[at] == ' ' || s[at] == '\t' || s[at] == '\r') {
		at++
	}
	if at < len(s) && (s[at] != '<' || at+1 < len(s) && (s[at+1] == '!' || s[at+1] == '?')) {
		return at, errMixed
	}
	return at, nil
}

// attribute is an attribute as it stands in a tag.
type attribute struct{ name, value, raw string }

// declares reports whether the attribute declares a namespace, or the default one.
func (a *attribute) declares() bool {
	return a.name == "xmlns" || strings.HasPrefix(a.name, "xmlns:")
}

// attributes returns the name of an element and its attributes.
func attributes(tag string) (name string, all []attribute, err error) {
	rest := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(tag, "<"), ">"), "/")
	end := strings.IndexAny(rest, " \t\r\n")
	if end < 0 {
		return rest, nil, nil
	}
	name, rest = rest[:end], rest[end:]
	for {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if rest == "" {
			return name, all, nil
		}
		before, behind, ok := strings.Cut(rest, "=")
		behind = strings.TrimLeft(behind, " \t\r\n")
		if !ok || behind == "" || behind[0] != '"' && behind[0] != '\'' {
			return name, nil, fmt.Errorf("a tag of %.40q cannot be read", name)
		}
		value, after, ok := strings.Cut(behind[1:], behind[:1])
		if !ok {
			return name, nil, fmt.Errorf("a tag of %.40q cannot be read", name)
		}
		all = append(all, attribute{strings.TrimRight(before, " \t\r\n"), value, rest[:len(rest)-len(after)]})
		rest = after
	}
}

// declaresNamespaces reports whether the tag of an element does.
func declaresNamespaces(tag string) bool { return strings.Contains(tag, "xmlns") }
