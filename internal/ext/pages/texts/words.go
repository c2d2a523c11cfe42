package texts

// The words that code puts into pages.
const (
	Maps      = "Topic maps"
	Types     = "Types"
	Changes   = "Changes"
	Snapshots = "Snapshots"
	Search    = "Find topics"
	Found     = "Topics called “%s”"

	SearchEnded = "The search was ended after %s. These are the topics that were found until then; the next page goes " +
		"on from there."
	TopicsOf = "Topics of "
	Listing  = "A–Z"

	NoLanguage = "without a language"
	Compared   = "What differs in "
	Node       = "Node"

	Concepts = "Hierarchy of concepts"

	// Kinds of maps that are written elsewhere.
	Replica = "replica"
	Derived = "derived"

	// Kinds of changes.
	Added     = "added"
	Changed   = "changed"
	Deleted   = "deleted"
	ChangesOf = "changes of topics" // of several kinds
	Moved     = "goes on under another identifier"

	XTM         = "XTM "
	Atom        = "Atom"
	JSONChanges = "JSON: its changes"

	// Titles of pages with forms.
	SignIn   = "Sign in"
	NewTopic = "New topic"
	Restore  = "Make it what it was"
	Undo     = "Undo"
	Restores = "Makes it what it was at %s"
	Undoes   = "Takes back the change of %s"
	Preview  = "What will be published"
	Conflict = "Others have changed this topic"

	// Labels of fields.
	Identifier = "Subject identifier"
	Author     = "By"
	Note       = "Note: why"
	Language   = "Language"

	// What a page has more of than it shows.
	MoreNames        = "names"
	MoreVariants     = "variants"
	MoreOccurrences  = "occurrences"
	MoreRoles        = "roles"
	MoreTypes        = "types"
	MoreAssociations = "associations"
	MoreInstances    = "instances"
	MoreReified      = "statements that it is about"
	MoreHistory      = "history"
	AndMore          = "… and %s more"

	// Kinds of statements that a topic reifies.
	Name        = "Name"
	Variant     = "Variant of a name"
	Occurrence  = "Occurrence"
	Association = "Association"
	RoleIn      = "Role in an association"

	// What needs a token, and what errors call a form.
	SeeingNode = "seeing what the node does"
	TheForm    = "what the form says"

	// What code says of a page that was asked for, or a form that was sent, in vain.
	ThereIsNo      = "there is no %s"
	NoPage         = "There is no such page."
	NoSubscription = "There is no subscription %q here. The page of the node lists all."
	FolderUnread   = "The data folder cannot be read. The log says why."
	FormUnread     = "The form cannot be read. Go back, and try again."
	FormTooLarge   = "The form is too large. Use the command instead, as \"tmshare-client edit reject --help\" says."
	FormNoTopic    = "The form names no topic. Go back, and use a button of the page."
	FormNoAction   = "The form does not say what to do. Go back, and use a button of the page."
	FormNoClaim    = "The form does not say what to reject. Go back, and use a button of the page."
	NoTopicGiven   = "Give the subject identifier of a topic, as in /topic.html?si=http://psi.example.org/oslo"

	// To whom the pages of a client's folder are not shown.
	WrongAddress = "This address is not one of the program. Open the one that it has printed."
	ForeignForm  = "This form is on a page of another site. Use the form of the page here."
	NotForYou    = "These pages are for who has started \"tmshare-client ui\". Open the address that it has printed."
	OldForm      = "This form is of an earlier start of the program. Go back, reload the page, and use its form."
	OldAddress   = "This address is not good, or not any more. Open the one that \"tmshare-client ui\" has printed last."
)
