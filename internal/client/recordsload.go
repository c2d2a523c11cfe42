package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// The records of a new source are loaded at once, like a snapshot, as long as they are independent: each describes one
// topic, and no other has its identifier. The first one that is not, and all later ones, are applied singly.

// load is a source that is being loaded.
type load struct {
	batches chan []follow.Result[obtained]
	ended   chan error // of the store
	stop    context.CancelFunc
	begun   []byte
	applied int
}

// errHeld is the error for a record that is held.
var errHeld = errors.New("client: a record is held")

// beginLoad begins to load the source, if nothing of it is held, and the topics of each record are known.
func (h *records) beginLoad(ctx context.Context) error {
	if h.format == nil || h.s.Staging == nil || h.begun == nil {
		return nil
	}
	if err := h.Each(ctx, func(string) error { return errHeld }); err != nil {
		if errors.Is(err, errHeld) {
			return nil
		}
		return err
	}
	l := &load{batches: make(chan []follow.Result[obtained]), ended: make(chan error, 1), begun: h.begun}
	ctx, l.stop = context.WithCancel(ctx)
	h.load = l
	go func() {
		l.ended <- h.Store.StageRecords(ctx, h.s.Name, h.stated(ctx, l), func(p *sources.Progress) {
			p.Records, p.Applied = l.begun, l.applied
		})
	}()
	return nil
}

// stated iterates over the statements of the records. Topics that they only mention come last: they are provisional.
func (h *records) stated(ctx context.Context, l *load) iter.Seq2[sources.Stated, error] {
	return func(yield func(sources.Stated, error) bool) {
		scratch := h.scratch(h.s)
		refs := scratch.Sorter() // of all topics: existing and mentioned ones
		err := l.each(ctx, yield, refs.Add)
		before := ""
		for row, failed := range refs.Sorted() {
			if err = errors.Join(err, failed); err != nil {
				break
			}
			ref, there := string(row.Key[:len(row.Key)-1]), row.Key[len(row.Key)-1] == topicThere
			if !there && ref != before {
				stub := &fragment.Topic{Provisional: true,
					Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{fragment.Ref(ref)}}}
				if !yield(sources.Stated{Record: fragment.Record{Topic: stub}}, nil) {
					err = errNoMore
				}
			}
			before = ref
		}
		if err = errors.Join(err, refs.Close()); err != nil && !errors.Is(err, errNoMore) {
			yield(sources.Stated{}, err)
		}
	}
}

// The kinds of rows: a topic exists, which sorts first, or is mentioned.
const topicThere, topicMentioned = 0, 1

// errNoMore ends an iteration whose consumer has stopped.
var errNoMore = errors.New("client: no more is wanted")

// each passes on the statements of the records, with the topics that they have and mention.
func (l *load) each(ctx context.Context, yield func(sources.Stated, error) bool,
	ref func(key, value []byte) error) error {
	mentioned := map[fragment.Ref]bool{}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case batch, more := <-l.batches:
			if !more {
				return nil
			}
			for i := range batch {
				if !yield(sources.Stated{Held: heldOf(&batch[i])}, nil) {
					return errNoMore
				}
				for _, f := range batch[i].Content.fragments {
					if err := l.fragment(f, yield, ref, mentioned); err != nil {
						return err
					}
				}
				l.applied++
			}
		}
	}
}

// heldOf returns the state of a record after it is loaded.
func heldOf(o *follow.Result[obtained]) *store.Held {
	topic := o.Content.fragment.Topic.TopicSI()
	return &store.Held{ID: o.ID, Updated: o.Updated, TopicSI: topic, Later: o.Content.later,
		Named: areNamesOf(o.TopicSI, topic)}
}

// fragment passes on the statements of a record about one topic.
func (l *load) fragment(f *fragment.Fragment, yield func(sources.Stated, error) bool,
	ref func(key, value []byte) error, mentioned map[fragment.Ref]bool) error {
	if err := ref(append([]byte(f.Topic.TopicSI()), topicThere), nil); err != nil {
		return err
	}
	for i := range f.Stubs {
		stub := f.Stubs[i].TopicSI()
		if mentioned[stub] {
			continue
		}
		if len(mentioned) == maxMentioned {
			clear(mentioned)
		}
		mentioned[stub] = true
		if err := ref(append([]byte(stub), topicMentioned), nil); err != nil {
			return err
		}
	}
	more := yield(sources.Stated{Record: fragment.Record{Topic: f.Topic}}, nil)
	for i := 0; more && i < len(f.Associations); i++ {
		more = yield(sources.Stated{Record: fragment.Record{Association: f.Associations[i]}}, nil)
	}
	if !more {
		return errNoMore
	}
	return nil
}

// maxMentioned is the number of mentioned topics that are remembered, so that they are not sorted repeatedly.
const maxMentioned = 10_000

// loadOf loads the records of a batch that can be loaded, and returns the others. If there are any, the load has ended.
func (h *records) loadOf(ctx context.Context, batch []follow.Result[obtained]) ([]follow.Result[obtained], error) {
	if h.load == nil {
		return batch, nil
	}
	n := 0
	for n < len(batch) && isPlain(&batch[n]) {
		n++
	}
	select {
	case h.load.batches <- batch[:n]:
	case err := <-h.load.ended:
		h.load.ended <- err // of no use: the round ends
		return nil, fmt.Errorf("loading the source: %w", err)
	}
	h.r.Entries, h.r.Applied = h.r.Entries+n, h.r.Applied+n
	if n < len(batch) {
		return batch[n:], h.endLoad(ctx)
	}
	return nil, nil
}

// endLoad ends the load and stages it.
func (h *records) endLoad(ctx context.Context) error {
	l := h.load
	if l == nil {
		return nil
	}
	h.load = nil
	close(l.batches)
	err := <-l.ended
	if l.stop(); err != nil {
		return err
	}
	now, err := h.Subscription(ctx, h.s.Name)
	if err != nil {
		return err
	}
	if now.Staging == nil {
		return fmt.Errorf("%s: %w", h.s.Name, store.ErrOvertaken)
	}
	h.s.Staging = now.Staging
	h.Store = newRoundStore(h.Store, h.s)
	return nil
}

// abandon gives up a load that was not ended.
func (h *records) abandon() {
	if h.load != nil {
		h.load.stop()
		<-h.load.ended
	}
}

// isPlain reports whether a record can be loaded independently of others.
func isPlain(o *follow.Result[obtained]) bool {
	c := &o.Content
	if o.Err != nil || o.Deleted || c.fragment == nil || c.missing != nil {
		return false
	}
	if topic := string(c.fragment.Topic.TopicSI()); topic != o.ID && iri.FromLocator(topic) != o.ID {
		return false // another record may be of the same topic
	}
	for _, f := range c.fragments {
		if f.Topic.Provisional || !isAlone(&f.Topic.Identity) {
			return false
		}
		for i := range f.Stubs {
			if !isAlone(&f.Stubs[i]) {
				return false
			}
		}
	}
	return true
}

// isAlone reports whether a topic has no identifier but one, which is its TopicSI.
func isAlone(t *fragment.Identity) bool {
	return len(t.SubjectIdentifiers) == 1 && len(t.SubjectLocators) == 0
}
