package history

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Version returns the last entry of a topic key in a state. It is [store.ErrNotFound] where the key had none yet, and
// [store.ErrGone] where the entry is pruned.
func Version(v *store.View, key string, at Moment) (*store.Entry, error) {
	e, err := v.Last(key)
	if err == nil && e == nil {
		err = fmt.Errorf("%w: a topic with the key %s in %s", store.ErrNotFound, key, v.Name)
	}
	for err == nil && e.Seq > at.Seq {
		if e.Prior == 0 {
			return nil, fmt.Errorf("%w: the topic %s at %s; %s has it since %s",
				store.ErrNotFound, e.TopicSI, feeds.FormatTime(at.Updated), v.Name, feeds.FormatTime(e.Updated))
		}
		if e.Prior <= v.Horizon {
			return nil, prunedVersion(v, e.TopicSI)
		}
		e, err = v.Entry(e.Prior)
	}
	return e, err
}

// Kept reports whether the record of an entry can be had as it was then.
func Kept(v *store.View, e *store.Entry) (bool, error) {
	if e.RecordStored() {
		return true, nil
	}
	last, err := v.LastOf(e.TopicSI)
	return err == nil && last != nil && last.Seq == e.Seq, err
}

// prunedVersion says that only the pruned part of the log had what a topic was.
func prunedVersion(v *store.View, topic fragment.Ref) error {
	return fmt.Errorf("%w: what %s was before its next change; the history of %s before %s is pruned", store.ErrGone, topic, v.Name, feeds.FormatTime(v.HorizonTime))
}

// NotKept says that the node does not have what a topic was. A replica has not been there from the beginning.
func NotKept(v *store.View, e *store.Entry) error {
	if v.Replica != nil {
		return fmt.Errorf("%w: what %s was at %s; this replica has not kept it: ask the origin, %s", store.ErrGone, e.TopicSI, feeds.FormatTime(e.Updated), v.Replica.Origin)
	}
	return fmt.Errorf("%w: what %s was at %s; it was too large to be kept when it changed", store.ErrGone, e.TopicSI, feeds.FormatTime(e.Updated))
}

// Read returns what an entry says of a live topic, without the associations that belong to its instances. The error is
// [store.ErrGone] where that cannot be had any more.
func Read(ctx context.Context, v *store.View, e *store.Entry) (*fragment.Fragment, error) {
	var doc bytes.Buffer
	if err := unpack(&doc, v, e); err != nil {
		return nil, err
	}
	f, err := fragment.Read(ctx, &doc, xtm.Options{Base: tmdm.Locator(v.SP), DropClashes: true}, e.TopicSI)
	if err != nil {
		return nil, fmt.Errorf("entry %d of collection %q: %w", e.Seq, v.Name, err)
	}
	f.Associations = slices.DeleteFunc(f.Associations, func(a *fragment.Association) bool { return a.Part(e.TopicSI) == fragment.AsType })
	return f, nil
}

// unpack writes the fragment of an entry, or its record where only that is kept.
func unpack(w io.Writer, v *store.View, e *store.Entry) error {
	if !e.RecordStored() {
		if kept, err := Kept(v, e); err != nil || !kept {
			return cmp.Or(err, NotKept(v, e))
		}
		return v.RenderRecord(w, e, xtm.V21)
	}
	stored, err := v.StoredFragment(e, xtm.V21)
	if !e.Stored { // the fragment is too large, the record is not
		stored, err = v.StoredRecord(e, xtm.V21)
	}
	if err != nil {
		return err
	}
	plain, err := stored.Plain()
	if err == nil {
		_, err = w.Write(plain)
	}
	return err
}
