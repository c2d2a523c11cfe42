package rdf

import (
	"fmt"

	"github.com/tmshare/tmshare/xtm"
)

// The rules by which readers count parts that they drop or change. Readers pass an error with the rule to Tolerated of
// their options.
var (
	UnmappedKeys = xtm.NewRule("unmapped-keys", xtm.RuleText{
		Broken: "no context maps a key to an IRI",
		Read:   "it is left out with all that is in it",
		Advice: "Map the key in the @context, or map it to null if it is to be left out", Loses: true,
	})
	GraphNames = xtm.NewRule("graph-names", xtm.RuleText{
		Broken: "the statements are a graph with a name",
		Read:   "the statements are read, and the name is left out",
		Advice: `A topic map has no place for it; "convert" to N-Quads or TriG keeps it`, Loses: true,
	})
	LanguageTags = xtm.NewRule("language-tags", xtm.RuleText{
		Broken: "a language tag is not well-formed (BCP 47)",
		Read:   "it is read with hyphens in place of underscores",
		Advice: "Write the tag as in en-US", Loses: true,
	})
	TextsWithoutLanguage = xtm.NewRule("texts-without-language", xtm.RuleText{
		Broken: "a text has the type rdf:langString, and no language",
		Read:   "it is read as a plain text",
		Advice: "Give the text a language tag, or no type", Loses: true,
	})
	RelativeIRIs = xtm.NewRule("relative-iris", xtm.RuleText{
		Broken: "an IRI is relative, and there is no base",
		Read:   "what is said with it is left out",
		Advice: "Write the whole IRI, or give the document a base: @base in its context", Loses: true,
	})
	BlankProperties = xtm.NewRule("blank-properties", xtm.RuleText{
		Broken: "a property is a blank node, which RDF does not have",
		Read:   "what is said with it is left out",
		Advice: "Give the property an IRI", Loses: true,
	})
	Directions = xtm.NewRule("directions", xtm.RuleText{
		Broken: "a text has a base direction, which RDF 1.1 does not have",
		Read:   "the text is read, and the direction is left out",
		Advice: "Remove @direction, or say the direction by characters of the text", Loses: true,
	})
	RoundedNumbers = xtm.NewRule("rounded-numbers", xtm.RuleText{
		Broken: "a number is none that xsd:double carries",
		Read:   "it is read as the double next to it",
		Advice: `Write it as a text with a type: {"@value": "…", "@type": "` + XSD + `decimal"}`, Loses: true,
	})
	UncarriedTexts = xtm.NewRule("uncarried-texts", xtm.RuleText{
		Broken: "a statement has a text or an IRI that XTM cannot carry",
		Read:   "it is left out",
		Advice: "Remove the control characters, or shorten the IRI", Loses: true,
	})
	FreeValues = xtm.NewRule("free-values", xtm.RuleText{
		Broken: "a value belongs to no property of a node",
		Read:   "it is left out",
		Advice: "Make it the value of a property, or remove it", Loses: true,
	})
)

// Untagged returns the violation of [TextsWithoutLanguage] by a literal, without its place; nil if there is none.
func Untagged(value, datatype string) *SyntaxError {
	if datatype != LangStr {
		return nil
	}
	return &SyntaxError{Rule: TextsWithoutLanguage, Of: fmt.Sprintf("%.60q", value),
		Reason: fmt.Sprintf("the text %.60q of the type rdf:langString has no language, and is read as a plain text", value)}
}
