package texts

// Address is an address of a map for programs. In its path, {si} is a placeholder for the subject identifier of a
// topic, {name} for a word of its name, and {time} for a time.
type Address struct {
	Method, Path string
	Type         string // of the answer; "": it is chosen by Accept
	Send         string // the body that the example sends, in the syntax of curl
	What         Text
}

// API are the addresses of a map, without those of notations of RDF.
var API = []Address{
	{"GET", "", "application/atom+xml", "", "The feed that names the feeds of the map (SDShare)"},
	{"GET", "/fragments", "application/atom+xml", "",
		"The feed of changes, the newest first. Older ones are in the documents that it links to (RFC 5005)"},
	{"GET", "/snapshots", "application/atom+xml", "", "The feed of snapshots"},
	{"GET", "/snapshots/current.xtm21", "application/x-tm+xml;version=2.1", "",
		"The whole map as it is now, in XTM 2.1"},
	{"GET", "/snapshots/current.xtm21?at={time}", "application/x-tm+xml;version=2.1", "",
		"The whole map as it was at a time"},
	{"GET", "/topics?si={si}", "application/x-tm+xml;version=2.1", "",
		"A topic by one of its subject identifiers: all that is said of it"},
	{"GET", "/history?limit=10", "application/json", "", "The last changes, with what they have changed in words"},
	{"GET", "/history?si={si}", "application/json", "", "The changes of a topic"},
	{"GET", "/differences?at={time}", "application/json", "", "What has changed since a time, topic by topic"},
	{"GET", "/search?q={name}", "application/json", "",
		"Topics that have a word, or one that begins so, in a name, a notation or a definition"},
	{"GET", "/opensearch.xml", "application/opensearchdescription+xml", "", "How the search is used (OpenSearch)"},
	{"PUT", "", "application/json", "-T map.xtm",
		"Publish a version of the map. What changes becomes entries of the feed"},
	{"POST", "/topics", "application/json", "--data-binary @topics.xtm",
		"Publish some topics, and leave the others as they are"},
	{"DELETE", "/topics?si={si}", "application/json", "", "Delete a topic"},
	{"POST", "/revert?si={si}&to={time}", "application/json", "", "Make a topic again what it was at a time"},
}

// Parts of the commands of examples.
const (
	Curl       = "curl -L"
	CurlAccept = "-H 'Accept: %s'"
	CurlToken  = "-H 'Authorization: Bearer TOKEN'"
)

// Graphs describes the addresses of the whole map in notations of RDF.
const Graphs Text = "The whole map as it is now, in %s"

// Programs is the title of the page of addresses.
const Programs Text = "For programs"
