package xtm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// Rule names a rule of a notation that a lenient reader does not enforce: widely used software breaks it, and the
// meaning is plain. It may also name content that a topic map, or the standard of the notation, has no place for.
type Rule string

// The rules.
const (
	UntypedNames    Rule = "untyped-names"    // XTM 1.0 has no <instanceOf> in <baseName>
	DeclaredPrefix  Rule = "declared-prefix"  // the prefix xlink is declared
	InNamespace     Rule = "in-namespace"     // <topicMap> is in a namespace of XTM
	NoTextBetween   Rule = "no-text-between"  // elements that hold elements hold no text
	ItemIdentifiers Rule = "item-identifiers" // an item identifier identifies one statement
	VariantScopes   Rule = "variant-scopes"   // the scope of a variant adds a topic to that of its name
	ReifierIDs      Rule = "reifier-ids"      // in XTM 2.0, reifiers are named by the ids of topic elements
	TypedMarkup     Rule = "typed-markup"     // markup in a value has the datatype that is for markup
)

// RuleText describes a rule for messages: how a document breaks it, how the document is read, and the remedy.
type RuleText struct {
	Broken, Read, Advice string
	// Loses reports whether the reader leaves out or changes content.
	Loses bool
}

var rules = map[Rule]RuleText{
	UntypedNames: {
		Broken: "<baseName> holds <instanceOf>, which XTM 1.0 does not allow",
		Read:   "it is read as the type of the name",
		Advice: "Convert the file to XTM 2.1: tmshare-client convert",
	},
	DeclaredPrefix: {
		Broken: "the prefix xlink is used but not declared",
		Read:   "it is read as that of XLink",
		Advice: `Declare xmlns:xlink="` + nsXLink + `" in <topicMap>`,
	},
	InNamespace: {
		Broken: "<topicMap> has no namespace",
		Read:   "it is read as XTM 1.0",
		Advice: `Declare xmlns="` + nsXTM1 + `" in <topicMap>`,
	},
	NoTextBetween: {
		Broken: "there is text where only elements may stand",
		Read:   "it is left out",
		Loses:  true,
		Advice: "Remove it, or make a comment of it",
	},
	ItemIdentifiers: {
		Broken: "a second statement has the item identifier of another",
		Read:   "it is left out there",
		Loses:  true,
		Advice: "Give each statement an id of its own",
	},
	VariantScopes: {
		Broken: "the scope of a variant adds no topic to that of its name (ISO 13250-2 §5.5, Variant items)",
		Read:   "it is left out",
		Loses:  true,
		Advice: "Give the variant a topic in its scope that the name has not",
	},
	ReifierIDs: {
		Broken: "a reifier is named by an IRI that is no id of a topic element, which XTM 2.0 does not allow",
		Read:   "it is read as the topic with that <itemIdentity>",
		Advice: "Name the id of the topic, or convert the file to XTM 2.1: tmshare-client convert",
	},
	TypedMarkup: {
		Broken: "<resourceData> holds markup and has no datatype",
		Read:   "it is read as one of xsd:anyType",
		Advice: `Give it datatype="` + tmdm.XSDAnyType + `"`,
	},
}

// NewRule adds a rule of another notation. It is not safe for concurrent use: call it from package variables.
func NewRule(r Rule, text RuleText) Rule {
	rules[r] = text
	return r
}

// Tally counts the violations of each rule. Its zero value and nil are empty. It is not safe for concurrent use.
type Tally struct{ counts []Count }

// Count is the number of violations of one rule.
type Count struct {
	Rule  Rule
	Times int
	First SyntaxError // where
	names []string    // distinct names of the violating items, if known
}

// maxNames is the number of names that a message lists.
const maxNames = 5

// Add counts an error that has a Rule.
func (t *Tally) Add(e *SyntaxError) {
	i := slices.IndexFunc(t.counts, func(c Count) bool { return c.Rule == e.Rule })
	if i < 0 {
		i = len(t.counts)
		t.counts = append(t.counts, Count{Rule: e.Rule, First: *e})
	}
	c := &t.counts[i]
	c.Times++
	if e.Of != "" && len(c.names) <= maxNames && !slices.Contains(c.names, e.Of) {
		c.names = append(c.names, e.Of)
	}
}

// Counts returns the counts in the order of their first faults.
func (t *Tally) Counts() []Count {
	if t == nil {
		return nil
	}
	return t.counts
}

// Times returns the number of times that a rule was broken.
func (t *Tally) Times(r Rule) int {
	for _, c := range t.Counts() {
		if c.Rule == r {
			return c.Times
		}
	}
	return 0
}

// Losses returns the counts of the rules whose violations lost content.
func (t *Tally) Losses() (lost []Count) {
	for _, c := range t.Counts() {
		if rules[c.Rule].Loses {
			lost = append(lost, c)
		}
	}
	return lost
}

// Tolerated returns a message: the violation of the rule, its number, and how the document was read.
func (c Count) Tolerated() string { return c.broken() + "; " + rules[c.Rule].Read }

// Warning returns the message of Tolerated and the advice.
func (c Count) Warning() string { return c.Tolerated() + ". " + rules[c.Rule].Advice }

// Problem returns a message: the violation of the rule, its number, and the remedy.
func (c Count) Problem() string { return c.broken() + ". " + rules[c.Rule].Advice }

func (c Count) broken() string {
	times := "once"
	if c.Times > 1 {
		times = fmt.Sprintf("%d times", c.Times)
	}
	if len(c.names) > 0 {
		times += ": " + strings.Join(c.names[:min(len(c.names), maxNames)], ", ")
	}
	if len(c.names) > maxNames {
		times += " and others"
	}
	if c.First.In != "" {
		times += "; first in " + c.First.In
	}
	return fmt.Sprintf("%s (%s)", rules[c.Rule].Broken, times)
}
