package ldes

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/rdf"
)

// terms are the statements of a stream about itself.
type terms struct {
	Stream  string `json:"stream"`
	History string `json:"history,omitempty"` // of the collection, as streams of ours have it
	Prefix  string `json:"prefix,omitempty"`

	Of       path     `json:"of,omitempty"` // from a member to its resource; none: members are no versions
	Time     path     `json:"time,omitempty"`
	Sequence path     `json:"sequence,omitempty"`
	Type     path     `json:"type"` // to the value that marks a version as a deletion
	Deletes  []string `json:"deletes"`
	Spent    []string `json:"spent,omitempty"` // the classes of the kinds of changes

	Transaction, Final path   `json:",omitempty"`
	Finals             string `json:",omitempty"` // the value of the last member of a transaction there

	Late    bool          `json:",omitempty"` // versions may come later than their times say
	Polling time.Duration `json:",omitempty"` // how often something new is expected

	// Latest states that the last version of each existing resource is kept. Drops states that also versions that are
	// not superseded may be dropped.
	Latest, Drops bool `json:",omitempty"`

	unread string // a property whose kind of path is not supported
}

// id returns the identity of the stream and of its history.
func (c *terms) id() string {
	if at := strings.LastIndex(c.Stream, "/ldes"); c.History != "" && at >= 0 { // a collection may have another name
		return c.History + c.Stream[at:]
	}
	return c.Stream
}

// streamsAt returns the streams that have a view at an address, or at the address of the document; else those with
// members, or of the type of streams.
func (d *read) streamsAt(view string) (found []rdf.Term) {
	for _, s := range d.subjects(treeView) {
		if slices.ContainsFunc(d.objects(s, treeView), func(v rdf.Term) bool {
			return page(v.Value) == view || page(v.Value) == d.URL
		}) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		found = d.subjects(treeMember)
	}
	if len(found) == 0 {
		found = slices.DeleteFunc(d.subjects(rdf.Type), func(s rdf.Term) bool {
			return !slices.Contains(d.objects(s, rdf.Type), rdf.NewIRI(eventStream))
		})
	}
	return found
}

// streamAt returns the stream at an address; of several, the one whose IRI is after the "#" of the URL.
func (d *read) streamAt(view, ref string) (rdf.Term, error) {
	all := d.streamsAt(view)
	if len(all) == 0 {
		return rdf.Term{}, d.noStream()
	}
	if len(all) == 1 {
		return all[0], nil
	}
	choice := &follow.ChoiceError{URL: page(ref)}
	for _, s := range all {
		if _, part, _ := strings.Cut(ref, "#"); s.Value == ref || s.Value == part {
			return s, nil
		}
		choice.Collections = append(choice.Collections, follow.Offer{Title: s.Value, URL: addressOf(ref, s)})
	}
	return rdf.Term{}, choice
}

// termsOf reads the description of a stream in a document.
func (d *read) termsOf(stream rdf.Term) *terms {
	unread := ""
	to := func(properties ...string) path {
		for _, p := range properties {
			stated := d.first(stream, nsLDES+p)
			if found := d.pathAt(stated); found != nil {
				return found
			}
			if stated.Kind != rdf.None {
				unread = p
			}
		}
		return nil
	}
	c := &terms{
		Stream: stream.Value, History: d.first(stream, string(feeds.RelHistory)).Value,
		Prefix: d.first(stream, string(feeds.RelPrefix)).Value,
		Of:     to("versionOfPath"), Time: to("versionTimestampPath", "timestampPath"),
		Sequence: to("versionSequencePath", "sequencePath"), Type: to("versionDeletePath"),
		Late:        d.first(stream, nsLDES+"versionTimestampPath").Kind != rdf.None,
		Transaction: to("transactionPath"), Final: to("transactionFinalizedPath"),
		Finals: d.first(stream, nsLDES+"transactionFinalizedObject").Value,
	}
	if n, err := strconv.ParseUint(d.first(stream, nsLDES+"pollingInterval").Value, 10, 31); err == nil {
		c.Polling = time.Duration(n) * time.Second
	}
	if c.unread = unread; c.Type == nil {
		c.Type = path{rdf.Type}
	}
	for _, o := range d.objects(stream, deleteObject) {
		c.Deletes = append(c.Deletes, o.Value)
	}
	if c.Deletes == nil {
		c.Deletes = []string{deleted}
	}
	c.Spent = slices.Clone(c.Deletes)
	for _, property := range []string{createObject, updateObject} {
		for _, o := range d.objects(stream, property) {
			c.Spent = append(c.Spent, o.Value)
		}
	}
	c.retains(d)
	return c
}

// retains reads the retention policy, in present and earlier terms, from the view or from a description of it.
func (c *terms) retains(d *read) {
	for _, view := range d.subjects(retention) {
		for _, p := range d.objects(view, retention) {
			amount := d.first(p, versionAmount).Value != "" || d.first(p, nsLDES+"amount").Value != "" ||
				d.first(p, nsTREE+"amount").Value != ""
			window := d.first(p, fullLog).Value != "" || slices.Contains(d.objects(p, rdf.Type),
				rdf.NewIRI(nsLDES+"DurationAgoPolicy"))
			c.Latest = c.Latest || amount
			c.Drops = c.Drops || window && !amount || d.first(p, nsLDES+"versionDuration").Value != "" ||
				d.first(p, nsLDES+"startingFrom").Value != "" ||
				slices.Contains(d.objects(p, rdf.Type), rdf.NewIRI(nsLDES+"PointInTimePolicy"))
		}
	}
}

// ordered reports whether the stream states the order of its members.
func (c *terms) ordered() bool { return c.Time != nil || c.Sequence != nil }

// spends reports whether a statement about a member belongs to the stream, and not to the resource.
func (c *terms) spends(q *rdf.Quad) bool {
	if q.Predicate.Value == rdf.Type && slices.Contains(c.Spent, q.Object.Value) {
		return true
	}
	return slices.ContainsFunc([]path{c.Of, c.Time, c.Sequence, c.Transaction, c.Final}, func(p path) bool {
		return len(p) > 0 && p[0] == q.Predicate.Value
	})
}
