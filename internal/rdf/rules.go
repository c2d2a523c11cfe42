package rdf

import "github.com/tmshare/tmshare/xtm"

// The rules by which readers count what they leave out, and what they change. An error with one of them is given to
// Tolerated of their options.
var (
	UnmappedKeys = xtm.NewRule("unmapped-keys", xtm.RuleText{
		Broken: "no context maps a key to an IRI",
		Read:   "it is left out with all that is in it",
		Advice: "Map the key in the @context, or map it to null if it is to be left out", Loses: true,
	})
	GraphNames = xtm.NewRule("graph-names", xtm.RuleText{
		Broken: "the statements are a graph with a name",
		Read:   "the statements are read, and the name is left out",
		Advice: "Say with --graph that this graph is meant", Loses: true,
	})
	LanguageTags = xtm.NewRule("language-tags", xtm.RuleText{
		Broken: "a language tag is not well-formed (BCP 47)",
		Read:   "it is read with hyphens in place of underscores",
		Advice: "Write the tag as in en-US", Loses: true,
	})
)
