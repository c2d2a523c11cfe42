package pages

import (
	"errors"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
)

// node is a topic without a name, as shown on the page of a topic that links to it.
type node struct {
	List  bool
	Parts []nodeValue
	Types []link
	Rows  []nodeRow
}

// nodeRow holds the values of one property of a node.
type nodeRow struct {
	Property link
	Values   []nodeValue
}

// nodeValue is one value of a property.
type nodeValue struct {
	Text  string
	Topic *link
	Node  *node
}

// reader returns a reader of nodes in their state around an entry, if that is known, or else in their present state.
func (d *describer) reader() (*nodes.Reader, error) {
	if d.nodes != nil {
		return d.nodes, nil
	}
	var states []fragment.Lookup
	for _, at := range []func(uint64) (records.State, error){d.v.Past, d.v.PastBefore} {
		if d.around == 0 {
			break
		}
		switch then, err := at(d.around); {
		case err == nil:
			states = append(states, then)
		case !errors.Is(err, store.ErrGone):
			return nil, err
		}
	}
	d.nodes = nodes.NewReader(nodes.SourceOf(d.languages, append(states, d.v.State())...))
	return d.nodes, nil
}

// node returns the description of a player of an association; nil if the player has a name.
func (d *describer) node(ref fragment.Ref) (*node, error) {
	r, err := d.reader()
	if err != nil {
		return nil, err
	}
	n, err := r.Node(ref)
	if n == nil || err != nil {
		return nil, err
	}
	return d.shownNode(n)
}

func (d *describer) shownNode(n *nodes.Node) (shown *node, err error) {
	shown = &node{List: n.List}
	if shown.Parts, err = d.values(n.Parts); err != nil {
		return nil, err
	}
	if shown.Types, err = d.links(n.Types); err != nil {
		return nil, err
	}
	for _, row := range n.Rows {
		property, err := d.link(row.Property)
		if err != nil {
			return nil, err
		}
		values, err := d.values(row.Values)
		if err != nil {
			return nil, err
		}
		shown.Rows = append(shown.Rows, nodeRow{property, values})
	}
	return shown, nil
}

func (d *describer) values(values []nodes.Value) (all []nodeValue, err error) {
	for i, v := range values {
		if i == most {
			all = append(all, nodeValue{Text: d.in.Say(texts.AndMore, d.in.Count(len(values)-most))})
			break
		}
		shown := nodeValue{Text: layout.Cut(v.Text)}
		switch {
		case v.Ref != "":
			l, err := d.link(v.Ref)
			if err != nil {
				return nil, err
			}
			shown.Topic = &l
		case v.Node != nil:
			if shown.Node, err = d.shownNode(v.Node); err != nil {
				return nil, err
			}
		}
		all = append(all, shown)
	}
	return all, nil
}
