package fragment

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// UnidentifiedPrefix is the prefix of the subject identifiers that [ReadSnapshot] and [ReadAs] give to topics without a
// subject identifier and subject locator. TMShare requires a subject identifier (Topic Map Fragment Data Service);
// servers of SDShare publish topics without one.
const UnidentifiedPrefix = "https://github.com/tmshare/tmshare/ns/1/unidentified/"

// Unidentified reports whether a source gives the topic neither a subject identifier nor a subject locator, so that its
// identifier was made here.
func (i Identity) Unidentified() bool {
	return strings.HasPrefix(string(i.TopicSI()), UnidentifiedPrefix)
}

// unidentified makes the subject identifier of a topic that a source knows by an item
// identifier only. The same source calls the topic so in each document.
func unidentified(sp string, iid tmdm.Locator) Ref {
	return UnidentifiedPrefix + Ref(uuid.NewSHA1(uuid.NameSpaceURL, []byte(sp+"\x00"+string(iid))).String())
}

// located makes the subject identifier of a topic that has subject locators only.
func located(sp string, sls []tmdm.Locator) Ref {
	return Ref(sp + "topic/" + xtm.TopicID(slices.Min(sls)))
}

// inDocument returns the item identifier that an id makes in a document with the base sp
// (ISO 13250-3 §4.6).
func inDocument(sp, id string) tmdm.Locator {
	return tmdm.Locator(strings.TrimSuffix(sp, "#") + "#" + id)
}

// callings returns the possible item identifiers in a document of a topic that an entry names by item identifiers. The
// entry may have the locator of the server's own file with an id; the document, whose base is sp, has only the id.
func callings(sp string, iids []tmdm.Locator) []tmdm.Locator {
	all := slices.Clone(iids)
	for _, l := range iids {
		if _, id, ok := strings.Cut(string(l), "#"); ok && id != "" {
			all = append(all, inDocument(sp, id))
		}
	}
	return all
}

// identify gives a subject identifier to each topic without one, as other servers publish, because records refer to
// topics by subject identifiers.
func identify(tm *tmdm.TopicMap, sp string) error {
	var without []*tmdm.Topic
	for t := range tm.Topics() {
		if len(t.SubjectIdentifiers()) == 0 {
			without = append(without, t)
		}
	}
	for _, t := range without {
		if sls := t.SubjectLocators(); len(sls) > 0 {
			if err := t.AddSubjectIdentifier(located(sp, sls)); err != nil {
				return err
			}
			continue
		}
		iids := t.ItemIdentifiers()
		if len(iids) > 1 && strings.HasPrefix(string(iids[0]), string(inDocument(sp, ""))) {
			iids = iids[1:] // the first is made of the id, which other documents may give to other topics
		}
		for _, iid := range iids {
			if err := t.AddSubjectIdentifier(unidentified(sp, iid)); err != nil {
				return err
			}
		}
	}
	return nil
}
