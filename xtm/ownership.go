package xtm

// ownership is for the reader of whole maps, which does not keep elements: each
// is made in the memory of an earlier one, and strings are made many at a time.
type ownership struct {
	texts        textArena
	topics       []*Topic // to be used again
	associations []*Association
	isAhead      bool // several elements are in use at a time
}

// release frees an unused element for reuse. It leaves exceptional ones to the garbage collector.
func (o *ownership) release(e Element) {
	const many = 64
	switch e := e.(type) {
	case *Topic:
		if len(e.Names)+len(e.Occurrences)+len(e.Types) <= many {
			o.topics = append(o.topics, e)
		}
	case *Association:
		if len(e.Roles) <= many {
			o.associations = append(o.associations, e)
		}
	}
}

// last takes the last element of a list.
func last[T any](list *[]*T) *T {
	n := len(*list) - 1
	if n < 0 {
		return new(T)
	}
	item := (*list)[n]
	*list = (*list)[:n]
	return item
}

// newTopic returns an empty element.
func (d *Decoder) newTopic() *Topic {
	if d.own == nil {
		return &Topic{Pos: d.pos()}
	}
	t := last(&d.own.topics)
	*t = Topic{
		ItemIdentifiers: t.ItemIdentifiers[:0], SubjectIdentifiers: t.SubjectIdentifiers[:0],
		SubjectLocators: t.SubjectLocators[:0],
		Types:           t.Types[:0], Names: t.Names[:0], Occurrences: t.Occurrences[:0], Pos: d.pos(),
	}
	return t
}

// newAssociation returns an empty element.
func (d *Decoder) newAssociation() *Association {
	if d.own == nil {
		return &Association{Pos: d.pos()}
	}
	a := last(&d.own.associations)
	*a = Association{Roles: a.Roles[:0], Pos: d.pos()}
	return a
}
