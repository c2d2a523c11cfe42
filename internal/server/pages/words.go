package pages

// The words that code puts into pages. All other texts are in the templates.
const (
	wordMaps      = "Topic maps"
	wordTypes     = "Types"
	wordChanges   = "Changes"
	wordSnapshots = "Snapshots"
	wordSearch    = "Find topics"
	wordFound     = "Topics called “%s”"
	wordTopicsOf  = "Topics of "

	// Kinds of maps that are written elsewhere.
	wordReplica = "replica"
	wordDerived = "derived"

	// Kinds of changes.
	wordAdded   = "added"
	wordChanged = "changed"
	wordDeleted = "deleted"
	wordMoved   = "goes on under another identifier"

	wordXTM  = "XTM "
	wordAtom = "Atom"

	// Titles of pages with forms.
	WordSignIn   = "Sign in"
	WordNewTopic = "New topic"
	WordPreview  = "What will be published"
	WordConflict = "Others have changed this topic"

	// Labels of fields.
	WordIdentifier = "Subject identifier"
	WordAuthor     = "By"
	WordNote       = "Note: why"
)
