package texts

// The words that code puts into pages.
const (
	Maps       Text = "Topic maps"
	Types      Text = "Types"
	ByLanguage Text = "Languages"
	Changes    Text = "Changes"
	Snapshots  Text = "Snapshots"
	Search     Text = "Find topics"
	Found      Text = "Topics found for “%s”"

	SearchEnded Text = "The search was ended after %s. These are the topics that were found until then; the next page " +
		"goes on from there."
	TopicsOf      = "Topics of %s"
	Listing  Text = "A–Z"

	NoLanguage Text = "without a language"
	Compared   Text = "What differs in %s"
	Node       Text = "Node"

	Concepts Text = "Hierarchy of concepts"
	BelowOf  Text = "Below %s"

	// Kinds of maps that are written elsewhere.
	Replica Text = "replica"
	Derived Text = "derived"

	// Kinds of changes.
	Added     Text = "added"
	Changed   Text = "changed"
	Deleted   Text = "deleted"
	ChangesOf Text = "changes of topics" // of several kinds
	AllKinds  Text = "all"
	Moved     Text = "goes on under another identifier"

	XTM              = "XTM "
	Atom             = "Atom"
	JSONChanges Text = "JSON: its changes"

	// Titles of pages with forms.
	SignIn   Text = "Sign in"
	NewTopic Text = "New topic"
	Move     Text = "Move a concept"
	Restore  Text = "Make it what it was"
	Undo     Text = "Undo"
	Restores Text = "Makes it what it was at %s"
	Undoes   Text = "Takes back the change of %s"
	Preview  Text = "What will be published"
	Conflict Text = "Others have changed this topic"

	// Labels of fields.
	Identifier Text = "Subject identifier"
	Author     Text = "By"
	Note       Text = "Note: why"

	// A title with the title of its subject.
	About    Text = "%s: %s"
	ListedOf Text = "%s, A–Z"

	// What a page has more of than it shows.
	MoreNames        Text = "names"
	MoreIdentifiers  Text = "identifiers"
	MoreLocators     Text = "locators"
	MoreRejections   Text = "rejections"
	MoreVariants     Text = "variants"
	MoreOccurrences  Text = "occurrences"
	MoreRoles        Text = "roles"
	MoreTypes        Text = "types"
	MoreAssociations Text = "associations"
	MoreKinds        Text = "kinds of associations"
	MoreInstances    Text = "instances"
	MoreReified      Text = "statements that it is about"
	MoreHistory      Text = "changes"
	AndMore          Text = "… and %s more"

	// Kinds of statements that a topic reifies.
	Name        Text = "Name"
	Variant     Text = "Variant of a name"
	Occurrence  Text = "Occurrence"
	Association Text = "Association"
	RoleIn      Text = "Role in an association"

	// Names of the actions that need a token, and of a form in errors.
	SeeingNode = "seeing what the node does"
	TheForm    = "what the form says"

	// ThereIsNo is the beginning of messages that programs get in English, too.
	ThereIsNo = "there is no "

	// HiddenField is a field of a form that has a name and a value.
	HiddenField = `<input type="hidden" name="%s" value="%s">`

	// Messages about a missing page, or a form that could not be accepted.
	NoPage         Text = "There is no such page."
	NoSubscription Text = "There is no subscription %q here. The page of the node lists all."
	FolderUnread   Text = "The data folder cannot be read. The log says why."
	FormUnread     Text = "The form cannot be read. Go back, and try again."
	FormTooLarge   Text = "The form is too large. Use the command instead, as \"tmshare-client edit reject --help\" says."
	FormNoTopic    Text = "The form names no topic. Go back, and use a button of the page."
	FormNoAction   Text = "The form does not say what to do. Go back, and use a button of the page."
	FormNoClaim    Text = "The form does not say what to reject. Go back, and use a button of the page."
	NoTopicGiven   Text = "Give the subject identifier of a topic, as in /topic.html?si=http://psi.example.org/oslo"

	// Messages to readers who may not see the pages of a client's folder.
	WrongAddress Text = "This address is not one of the program. Open the one that it has printed."
	ForeignForm  Text = "This form is on a page of another site. Use the form of the page here."
	NotForYou    Text = "These pages are for who has started \"tmshare-client ui\". Open the address that it has printed."
	OldForm      Text = "This form is of an earlier start of the program. Go back, reload the page, and use its form."
	OldAddress   Text = "This link is invalid or has expired. Open the one that \"tmshare-client ui\" has " +
		"printed last."
)

// What languages have for themselves.
const (
	NameOfLanguage Text = "English"
	FormsOfNumbers Text = "one other" // of Unicode TR 35, in the order in which texts have them
	ANumber        Text = "1,234.5"
	ATime          Text = "2006-01-02 15:04:05 UTC" // as [time.Time.Format] has it, and so below
	AMinute        Text = "2006-01-02 15:04 UTC"
	ADay           Text = "2 Jan"
	ADayAndMinute  Text = "2 Jan, 15:04"
	AMonthOfAYear  Text = "January 2006"
	AMonth         Text = "Jan 2006"
	Minutes        Text = "min" // symbols of units
	Hours          Text = "h"
	Days           Text = "d"
)

// Words are the texts of core packages that pages show: months, kinds of changes, states of subscriptions, activities,
// the counts of a round, and the titles of problems.
var Words = []Text{
	"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
	"December", "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
	"added", "updated", "deleted", "moved",
	"not loaded yet", "being loaded", "in step", "in step, but for what is in quarantine", "being replaced",
	"last round failed", "in doubt", "needs an extension",
	"applied", "quarantined", "released", "forgotten", "replaced", "repaired", "mended", "edited", "rejected",
	"unrejected", "subscribed", "unsubscribed",
	"bytes", "records", "fragments", "documents", "rows",
	"Bad Request", "Unauthorized", "Forbidden", "Not Found", "Method Not Allowed", "Conflict", "Gone",
	"Precondition Failed", "Request Entity Too Large", "Unsupported Media Type", "Unprocessable Entity",
	"Too Many Requests", "Internal Server Error", "Service Unavailable", "something without a name",
}

// Phrases are the fixed parts of statements, without values and names of topics. If one is a prefix of another, the
// longer one comes first.
var Phrases = []Text{
	"subject identifier", "subject locator", "association of type", "occurrence", "variant", "instance of", "of type",
	"of name", "name", "in scope", "reified by", "with", "roles", "of",
}
