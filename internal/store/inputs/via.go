package inputs

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
)

// Name sets in the entries of a change of a derived collection the source entries in its inputs: those that changed a
// record with one of the topic's identifiers. state is the state before the change.
func Name(state merge.State, c *fragment.Change, via map[fragment.Ref][]string) error {
	if len(via) == 0 || c == nil {
		return nil
	}
	put := map[fragment.Ref]*fragment.Topic{}
	for _, t := range c.PutTopics {
		put[t.TopicSI()] = t
	}
	for i := range c.Entries {
		e := &c.Entries[i]
		before, err := state.Topic(e.TopicSI)
		if err != nil {
			return err
		}
		for _, t := range []*fragment.Topic{{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{e.TopicSI}}},
			before, put[e.Topic]} {
			if t == nil {
				continue
			}
			for _, si := range t.SubjectIdentifiers {
				e.Via = append(e.Via, via[si]...)
			}
		}
		slices.Sort(e.Via)
		e.Via = slices.Compact(e.Via)
	}
	return nil
}
