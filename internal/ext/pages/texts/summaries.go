package texts

// The sentences of feeds, which are the same for all readers.
const (
	WasAdded       = "Added"
	WasDeleted     = "Deleted."
	HasMoved       = "Goes on under another identifier."
	HasChanged     = "Changed"
	IsNew          = "New"
	IsGone         = "No longer said"
	Quoted         = "“%s”"
	WasAndIs       = "was “%s”, is “%s”"
	AndMoreChanges = "and %s more"
	OneOfMany      = "One of %s topics that changed together."

	// What stands before a type and a theme where a statement is put into words.
	OfType  = " of type "
	InScope = " in scope "
)
