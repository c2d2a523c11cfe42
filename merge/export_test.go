package merge

// JoinedReifiers returns how many topics of the view are one only because they
// reify the same.
func JoinedReifiers(v *View) (n int) {
	for range v.joined.Topics() {
		n++
	}
	return n
}

// HoldAssociations sets how many associations of a topic a view holds at a time,
// and returns what sets it back.
func HoldAssociations(n int) (back func()) {
	before := manyAssociations
	manyAssociations = n
	return func() { manyAssociations = before }
}
