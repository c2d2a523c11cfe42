package merge

// JoinedReifiers returns the number of topics of the view that are merged only because they reify the same statement.
func JoinedReifiers(v *View) (n int) {
	for range v.joined.Topics() {
		n++
	}
	return n
}

// HoldAssociations sets the number of associations of a topic that a view holds at a time, and returns a function that
// restores it.
func HoldAssociations(n int) (back func()) {
	before := manyAssociations
	manyAssociations = n
	return func() { manyAssociations = before }
}
