package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Commit implements [follow.Sink]: it applies fetched records, and stores the state of each with it.
func (h *records) Commit(ctx context.Context, batch []follow.Result[obtained],
	waited func(*follow.Record) bool) (waiting []*follow.Record, err error) {
	if batch, err = h.loadOf(ctx, batch); err != nil || len(batch) == 0 {
		return nil, err
	}
	var bad []error
	for i := range batch {
		if batch[i].Err != nil {
			bad = append(bad, batch[i].Err)
		}
	}
	if err := h.inQuarantine.add(ctx, h.Client, h.s, bad); err != nil {
		return nil, err
	}
	applied, unusable := 0, 0
	err = h.Store.ApplyEntries(ctx, h.s.Name, func(a *store.Applying) error {
		var noted notes
		waiting = nil
		for i := range batch {
			done, err := h.apply(a, &batch[i], &noted, waited)
			if err != nil {
				return fmt.Errorf("applying the record %s: %w", batch[i].ID, err)
			}
			if !done {
				waiting = append(waiting, batch[i].Record)
			}
		}
		if h.begun != nil {
			a.Records = h.begun
		}
		applied, unusable = len(noted.applied), noted.unusable
		a.Applied += applied
		return noted.keep(a)
	})
	if err == nil {
		h.r.Entries += len(batch) - len(waiting)
		h.r.Applied += applied
		h.r.Unusable += unusable
	}
	return waiting, err
}

// apply applies a fetched record to the source, unless another record conflicts, and this one has not waited for it
// yet.
func (h *records) apply(a *store.Applying, o *follow.Result[obtained], noted *notes,
	waited func(*follow.Record) bool) (done bool, err error) {
	before, err := a.Held(o.ID)
	if err != nil {
		return false, err
	}
	held := store.Held{ID: o.ID}
	if before != nil {
		held = *before
	}
	entry := sources.ActivityEntry{TopicSI: string(held.TopicSI), Title: o.Title, State: string(feeds.StateLive),
		Updated: o.Updated}
	if entry.TopicSI == "" {
		entry.TopicSI = o.Topic()
	}
	bad, topic := o.Err, fragment.Ref("")
	if bad == nil && o.Content.fragment != nil {
		if topic, bad, err = h.describe(a, o); err != nil {
			return false, err
		}
		if bad != nil && held.TopicSI != o.Content.fragment.Topic.TopicSI() { // it is no longer about that one
			if err := h.drop(a, &held); err != nil {
				return false, err
			}
		}
		if bad != nil && !waited(o.Record) {
			if before != nil {
				err = a.Hold(held)
			}
			return false, err
		}
	}
	switch {
	case bad != nil:
		if follow.Gone(bad) {
			bad = fmt.Errorf("%w, though the source says that it is there; the topic was removed", bad)
			if err := h.drop(a, &held); err != nil {
				return false, err
			}
		}
		held.Updated = o.Updated
		if err := a.Hold(held); err != nil {
			return false, err
		}
		return true, noted.quarantine(a, o, entry, bad)
	case o.Content.fragment == nil: // deleted, or available in no format that we read
		if err := h.drop(a, &held); err != nil {
			return false, err
		}
		if err := a.LetGo(o.ID); err != nil {
			return false, err
		}
		if !o.Deleted {
			noted.unusable++
			if err := a.Hold(store.Held{ID: o.ID, Updated: o.Updated}); err != nil {
				return false, err
			}
		}
		entry.State = string(feeds.StateDeleted)
	default:
		if err := h.put(a, &held, o, topic); err != nil {
			return false, err
		}
	}
	noted.applied = append(noted.applied, entry)
	if o.Content.fragment != nil && o.Content.missing != nil {
		return true, noted.quarantine(a, o, entry,
			fmt.Errorf("%w; %s was taken, which may say less", o.Content.missing, o.Content.from))
	}
	at := o.Updated
	if o.Deleted || h.whole {
		at = forever
	}
	was, err := a.Release(o.ID, at)
	if was {
		noted.released = append(noted.released, entry)
	}
	return true, err
}

// quarantine puts a record into quarantine.
func (n *notes) quarantine(
	a *store.Applying, o *follow.Result[obtained], entry sources.ActivityEntry, bad error,
) error {
	entry.Error = bad.Error()
	n.quarantined = append(n.quarantined, entry)
	q := store.Quarantined{
		TopicSI: o.ID, Names: o.TopicSI, Located: o.TopicSL, Entry: o.ID, Title: o.Title, State: entry.State,
		Updated: o.Updated, Error: entry.Error,
	}
	forms := follow.Lasting(o.Content.forms)
	if len(forms) > 0 {
		q.Link = forms[0].URL
	}
	var err error
	if q.Forms, err = json.Marshal(forms); err != nil {
		return err
	}
	return a.Quarantine(q)
}

// describe returns the topic that a fetched record describes from now on; "" if another record does. Two records of one
// topic would undo each other's statements. One of them yields if only the other has the topic's name: it has been
// merged into that, and its deletion will follow. Otherwise the conflict is an error of the record.
func (h *records) describe(a *store.Applying, o *follow.Result[obtained]) (topic fragment.Ref, conflict, err error) {
	topic = o.Content.fragment.Topic.TopicSI()
	other, err := h.inTheWay(a, o)
	if err != nil || other == nil {
		return topic, nil, err
	}
	switch named := areNamesOf(o.TopicSI, topic); {
	case named && !other.Named:
		return topic, nil, a.Hold(store.Held{ID: other.ID, Updated: other.Updated})
	case !named && other.Named && len(o.TopicSI) > 0:
		return "", nil, nil
	}
	return "", fmt.Errorf("%s: the record %s describes the topic %s already", o.Content.from, other.ID, other.TopicSI), nil
}

// inTheWay returns another record that describes the fetched topic; nil if none does. If the source does not name the
// topics of its records, records that share any identifier are of one topic.
func (h *records) inTheWay(a *store.Applying, o *follow.Result[obtained]) (*store.Held, error) {
	t := o.Content.fragment.Topic
	topics := []fragment.Ref{t.TopicSI()}
	if len(o.TopicSI) == 0 {
		for _, sharing := range []struct {
			locators []tmdm.Locator
			topic    func(tmdm.Locator) (*fragment.Topic, error)
		}{{t.SubjectIdentifiers, a.Topic}, {t.SubjectLocators, a.TopicBySubjectLocator}} {
			for _, l := range sharing.locators {
				other, err := sharing.topic(l)
				if err != nil {
					return nil, err
				}
				if other != nil {
					topics = append(topics, other.TopicSI())
				}
			}
		}
	}
	for _, topic := range topics {
		by, err := a.Describing(topic)
		if err != nil {
			return nil, err
		}
		if by != "" && by != o.ID {
			return a.Held(by)
		}
	}
	return nil, nil
}

// put applies the fragment of a record. topic is "" if another record describes the topic: then put only stores the
// record's state, because its content may be of the time when the two were merged.
func (h *records) put(a *store.Applying, held *store.Held, o *follow.Result[obtained], topic fragment.Ref) error {
	if held.TopicSI != topic { // it is about another one now
		if err := h.drop(a, held); err != nil {
			return err
		}
	}
	if topic != "" {
		if err := h.say(a.State, o.Content.fragments); err != nil {
			return err
		}
	}
	return a.Hold(store.Held{ID: o.ID, Updated: o.Updated, TopicSI: topic, Later: o.Content.later,
		Named: areNamesOf(o.TopicSI, topic)})
}

// areNamesOf reports whether one of the identifiers by which a source names a topic, or their
// URIs, is the topic's.
func areNamesOf(topicSI []string, topic fragment.Ref) bool {
	return slices.ContainsFunc(topicSI, func(si string) bool { return iri.ToURI(si) == iri.ToURI(string(topic)) })
}

// forever is later than all times: the quarantine of a deleted record, or of a record whose state is known from a
// complete list, is obsolete at any time, because in another history the entry may be older.
var forever = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// drop removes the topic that a record described, if it is that one's still.
func (h *records) drop(a *store.Applying, held *store.Held) error {
	if held.TopicSI == "" {
		return nil
	}
	topic, err := a.Topic(held.TopicSI)
	if err != nil || topic != nil && topic.TopicSI() != held.TopicSI {
		return err
	}
	ref := held.TopicSI
	held.TopicSI = ""
	gone := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref}},
		Provisional: h.format != nil}
	return h.say(a.State, []*fragment.Fragment{{TopicSI: ref, Deleted: true, Topic: gone}})
}

// say applies the statements of a record.
func (h *records) say(s merge.State, parts []*fragment.Fragment) error {
	if h.format != nil {
		return h.format.Apply(s, parts)
	}
	return merge.Apply(s, parts[0])
}
