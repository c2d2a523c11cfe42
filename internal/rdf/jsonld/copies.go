package jsonld

import "bytes"

// mostCopied is the maximum number of terms that the contexts of a document inherit from outer ones, summed over all
// contexts, because the library copies them.
const mostCopied = 16_000_000

// copies counts the terms that are copied.
type copies struct {
	scoped map[string]int // terms with a context of their own → terms of it
	all    int
}

// checkCopies refuses a document of many contexts among many terms before the library reads it.
func (d *document) checkCopies(value any) error {
	c := &copies{scoped: map[string]int{}}
	c.collect(value, false)
	c.count(value, 0)
	if c.all > mostCopied {
		return d.fail(bytes.Index(d.data, []byte(`"@context"`)),
			"the contexts of the document take over more than %d terms from those around them; write one @context at the "+
				"top, with all terms", mostCopied)
	}
	return nil
}

// collect finds the terms that have contexts of their own.
func (c *copies) collect(value any, inContext bool) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			c.collect(each, inContext)
		}
	case map[string]any:
		for key, each := range v {
			if definition, ok := each.(map[string]any); ok && inContext {
				if scoped, ok := definition["@context"]; ok {
					c.scoped[key] = max(c.scoped[key], terms(scoped))
				}
			}
			c.collect(each, inContext || key == "@context")
		}
	}
}

// terms returns the number of terms that a context defines.
func terms(context any) (n int) {
	switch v := context.(type) {
	case string:
		if known, ok := contexts[v].(map[string]any); ok {
			return terms(known["@context"])
		}
	case []any:
		for _, each := range v {
			n += terms(each)
		}
	case map[string]any:
		n = len(v)
	}
	return n
}

// count adds the terms copied by the contexts of a value, if known terms are inherited.
func (c *copies) count(value any, known int) {
	switch v := value.(type) {
	case string:
		return
	case []any:
		for _, each := range v {
			c.count(each, known)
		}
	case map[string]any:
		if context, ok := v["@context"]; ok {
			c.context(context, known)
			known += terms(context)
		}
		for key, each := range v {
			if key == "@context" {
				continue
			}
			below := known
			below += c.use(key, known)
			if key == "@type" || c.scoped[key] == 0 {
				below += c.types(each, known)
			}
			c.count(each, below)
		}
	}
}

// context adds the terms copied by a context and by those of its terms, which the library reads with it.
func (c *copies) context(context any, known int) {
	c.all += known
	switch v := context.(type) {
	case []any:
		for _, each := range v {
			c.context(each, known)
			known += terms(each)
		}
	case map[string]any:
		known += len(v)
		for _, each := range v {
			if definition, ok := each.(map[string]any); ok {
				if scoped, ok := definition["@context"]; ok {
					c.context(scoped, known)
				}
			}
		}
	}
}

// use adds the terms copied by the context of a term at its use, and returns the number of its terms.
func (c *copies) use(term string, known int) int {
	n, ok := c.scoped[term]
	if ok {
		c.all += known
	}
	return n
}

// types is use for each text that may be a type.
func (c *copies) types(value any, known int) (n int) {
	switch v := value.(type) {
	case string:
		return c.use(v, known)
	case []any:
		for _, each := range v {
			if text, ok := each.(string); ok {
				n += c.use(text, known)
			}
		}
	}
	return n
}
