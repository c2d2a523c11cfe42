package collections

import "slices"

// Input is a collection or a subscription of this node from which another is derived. A name alone may become
// another's.
type Input struct {
	Name   string
	Number uint32 // of the collection or subscription
	Feed   string // the id of its fragments feed; the URL where that has no id
	URL    string `json:",omitempty"` // of the fragments feed of a subscription, by its first address
}

// IsInput reports whether the collection is derived from the collection or subscription with a name and a number.
func (c *Collection) IsInput(name string, number uint32) bool {
	if !slices.Contains(c.DerivedFrom, name) {
		return false
	}
	bound := slices.IndexFunc(c.Inputs, func(in Input) bool { return in.Name == name })
	return bound < 0 || c.Inputs[bound].Number == number
}
