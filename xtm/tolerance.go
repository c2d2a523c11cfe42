package xtm

import (
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// Rule is one that lenient reading does not insist on, because widely used
// software breaks it and what is meant is plain.
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

// rules says of each rule how it is broken, what lenient reading makes of that,
// and what to do about it.
var rules = map[Rule]struct{ broken, read, advice string }{
	UntypedNames: {"<baseName> holds <instanceOf>, which XTM 1.0 does not allow", "it is read as the type of the name",
		"Convert the file to XTM 2.1: tmshare-client convert"},
	DeclaredPrefix: {"the prefix xlink is used but not declared", "it is read as that of XLink",
		`Declare xmlns:xlink="` + nsXLink + `" in <topicMap>`},
	InNamespace: {"<topicMap> has no namespace", "it is read as XTM 1.0",
		`Declare xmlns="` + nsXTM1 + `" in <topicMap>`},
	NoTextBetween: {"there is text where only elements may stand", "it is left out",
		"Remove it, or make a comment of it"},
	ItemIdentifiers: {"a second statement has the item identifier of another", "it is left out there",
		"Give each statement an id of its own"},
	VariantScopes: {"the scope of a variant adds no topic to that of its name (ISO 13250-2 §5.5, Variant items)", "it is left out",
		"Give the variant a topic in its scope that the name has not"},
	ReifierIDs: {"a reifier is named by an IRI that is no id of a topic element, which XTM 2.0 does not allow", "it is read as the topic with that <itemIdentity>",
		"Name the id of the topic, or convert the file to XTM 2.1: tmshare-client convert"},
	TypedMarkup: {"<resourceData> holds markup and has no datatype", "it is read as one of xsd:anyType",
		`Give it datatype="` + tmdm.XSDAnyType + `"`},
}

// Tally counts how often each rule was broken. The zero value is empty, and so is
// nil. It is not safe for concurrent use.
type Tally struct{ counts []Count }

// Count is how often one rule was broken.
type Count struct {
	Rule  Rule
	Times int
	First SyntaxError // where
}

// Add counts an error that has a Rule.
func (t *Tally) Add(e *SyntaxError) {
	i := slices.IndexFunc(t.counts, func(c Count) bool { return c.Rule == e.Rule })
	if i < 0 {
		t.counts = append(t.counts, Count{e.Rule, 1, *e})
		return
	}
	t.counts[i].Times++
}

// Counts returns what was counted, in the order in which it was first met.
func (t *Tally) Counts() []Count {
	if t == nil {
		return nil
	}
	return t.counts
}

// Times returns how often a rule was broken.
func (t *Tally) Times(r Rule) int {
	for _, c := range t.Counts() {
		if c.Rule == r {
			return c.Times
		}
	}
	return 0
}

// Tolerated says how the rule was broken, how often, and how that was read.
func (c Count) Tolerated() string { return c.broken() + "; " + rules[c.Rule].read }

// Warning does the same, and says what to do about it.
func (c Count) Warning() string { return c.Tolerated() + ". " + rules[c.Rule].advice }

// Problem says how the rule was broken, how often, and what to do about it.
func (c Count) Problem() string { return c.broken() + ". " + rules[c.Rule].advice }

func (c Count) broken() string {
	times := "once"
	if c.Times > 1 {
		times = fmt.Sprintf("%d times", c.Times)
	}
	return fmt.Sprintf("%s (%s)", rules[c.Rule].broken, times)
}
