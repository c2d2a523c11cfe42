package records

import (
	"bytes"
	"iter"

	"github.com/tmshare/tmshare/fragment"
)

// InPassing implements [fragment.Passable].
func (s State) InPassing() fragment.Source { return &passing{State: s} }

// passing is a State of which the records are looked at one by one.
type passing struct {
	State
	decoder, classes, other fragment.Decoder

	atTopics bool             // they are being yielded
	walk     *associationWalk // reads classes in parallel, once requested
	last     fragment.Ref     // the instance of the last request
}

// Topics implements [fragment.Source].
func (p *passing) Topics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		p.atTopics, p.last = true, ""
		defer p.end()
		p.topics(p.decoder.Topic)(yield)
	}
}

func (p *passing) end() {
	if p.walk != nil {
		p.walk.Close()
	}
	p.atTopics, p.walk = false, nil
}

// AssociationsOf implements [fragment.Source]. It reads classes requested topic by topic in one pass next to the
// topics, because a look-up for each takes several times as long.
func (p *passing) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		if part != fragment.AsInstance || !p.atTopics || player <= p.last {
			p.State.AssociationsOf(player, part)(yield)
			return
		}
		if p.walk == nil {
			p.walk = p.storedAssociations()
		}
		for p.last = player; ; {
			record, err := p.walk.class(player)
			if record == nil && err == nil {
				return
			}
			var a *fragment.Association
			if err == nil {
				a, err = decoding(p.classes.Association).decode(p.walk.row.Key, record)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// Associations implements [fragment.Source].
func (p *passing) Associations() iter.Seq2[*fragment.Association, error] {
	return p.associations(p.other.Association)
}

// isLeast reports whether the player of an association row is the least of the association, or the row is damaged,
// which decoding will report. prefix is the common key prefix.
func isLeast(r row, prefix []byte) bool {
	record, inline := bytes.CutPrefix(r.Value, []byte{rowInline})
	if !inline {
		return !elsewhere(r)
	}
	player, _, _, ok := splitPlaying(r.Key[len(prefix):])
	least := fragment.LeastPlayer(record)
	return !ok || least == nil || bytes.Equal(player, least)
}
