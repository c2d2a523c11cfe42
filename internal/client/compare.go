package client

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/merge"
)

// Difference is what the two sides say of one topic, as far as it differs.
type Difference struct {
	TopicSI string   `json:"topicSI"`
	Here    []string `json:"here,omitempty"`   // only the subscriber says
	Server  []string `json:"server,omitempty"` // only the server says
}

// maxDifferences is how many topics a comparison describes the differences of.
const maxDifferences = 1000

// recordComparison compares the records of a source with those of the server's map.
type recordComparison struct {
	Path string // files are made beside it
	// bytes of items that are sorted in memory; default 16 MB
	Memory int
	Theirs func(use func(iter.Seq2[fragment.Record, error]) error) error // calls use with the server's records

	Topics, Associations int          // of the server; a type-instance relation is no association here
	Differences          []Difference // the first ones
	More                 int          // other topics that differ

	theirs *statedigest.Set // the items of the server's records
}

// Close removes the files.
func (c *recordComparison) Close() {
	if c.theirs != nil {
		c.theirs.Close()
	}
}

// Load reads the items of the server's records.
func (c *recordComparison) Load(ctx context.Context) error {
	return c.Theirs(func(all iter.Seq2[fragment.Record, error]) (err error) {
		if c.theirs != nil { // the map is read once more
			err = c.theirs.Close()
		}
		if err == nil {
			c.theirs, c.Topics, c.Associations, err = c.set(ctx, "-server", all)
		}
		return err
	})
}

// Compare compares a source with the server's map, which is loaded, and returns the digest of both, "" where they
// differ. Where the source has a digest, that must agree with its records: then only where it is another one, the
// records are read again.
func (c *recordComparison) Compare(ctx context.Context, here fragment.Source) (digest string, err error) {
	theirs, err := c.theirs.Digest()
	if err != nil {
		return "", err
	}
	if tree, ok := here.(interface {
		Digest() (statedigest.Digest, error)
	}); ok {
		held, err := tree.Digest()
		if err != nil {
			return "", err
		}
		if held == theirs {
			return held.String(), nil
		}
	}
	return c.differences(ctx, here)
}

// differences finds out what differs, topic by topic. It returns the digest where nothing does.
func (c *recordComparison) differences(ctx context.Context, here fragment.Source) (digest string, err error) {
	mine, _, _, err := c.set(ctx, "-here", fragment.Records(here))
	defer func() { err = errors.Join(err, mine.Close()) }()
	if err != nil {
		return "", err
	}
	differ := map[fragment.Ref]bool{}
	last := "" // the records of an owner stand together
	err = statedigest.Differing(mine, c.theirs, func(owner string) {
		switch {
		case differ[fragment.Ref(owner)]:
		case len(differ) < maxDifferences:
			differ[fragment.Ref(owner)] = true
		case owner != last:
			c.More++
		}
		last = owner
	})
	if err != nil {
		return "", err
	}
	if len(differ) == 0 {
		same, err := mine.Digest()
		return same.String(), err
	}
	return "", c.describe(here, differ)
}

// set returns the items of records, and how many topics and associations there are.
func (c *recordComparison) set(ctx context.Context, suffix string,
	all iter.Seq2[fragment.Record, error]) (s *statedigest.Set, topics, associations int, err error) {
	s = statedigest.NewSet(c.Path+suffix, cmp.Or(c.Memory, 16<<20))
	for r, err := range all {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && r.Topic != nil {
			topics++
			err = s.Add(statedigest.OfTopic(r.Topic))
		}
		if err == nil && r.Association != nil {
			if _, _, ok := r.Association.TypeInstance(); !ok {
				associations++
			}
			err = s.Add(statedigest.OfAssociation(r.Association))
		}
		if err != nil {
			return s, 0, 0, err
		}
	}
	return s, topics, associations, nil
}

// describe says how the sides differ in what they say of some topics.
func (c *recordComparison) describe(here fragment.Source, differ map[fragment.Ref]bool) error {
	var server *merge.Memory // what concerns these topics
	err := c.Theirs(func(all iter.Seq2[fragment.Record, error]) error {
		server = &merge.Memory{}
		for r, err := range all {
			if err == nil && r.Topic != nil && differ[r.Topic.TopicSI()] {
				err = server.PutTopic(r.Topic)
			}
			if err == nil && r.Association != nil && slices.ContainsFunc(r.Association.Players(), func(p fragment.Ref) bool {
				return differ[p]
			}) {
				err = server.PutAssociation(r.Association)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, topic := range slices.Sorted(maps.Keys(differ)) {
		mine, err := fragment.Describe(here, topic)
		if err != nil {
			return err
		}
		theirs, err := fragment.Describe(server, topic)
		if err != nil {
			return err
		}
		c.Differences = append(c.Differences,
			Difference{TopicSI: string(topic), Here: without(mine, theirs), Server: without(theirs, mine)})
	}
	return nil
}

// without returns the lines of a that b lacks.
func without(a, b []string) []string {
	has := map[string]bool{}
	for _, line := range b {
		has[line] = true
	}
	var left []string
	for _, line := range a {
		if !has[line] {
			left = append(left, line)
		}
	}
	return left
}
