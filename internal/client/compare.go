package client

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/merge"
)

// Difference holds the differing statements of both sides about one topic.
type Difference struct {
	TopicSI string   `json:"topicSI"`
	Here    []string `json:"here,omitempty"`   // only at the subscriber
	Server  []string `json:"server,omitempty"` // only at the server
}

// maxDifferences is the number of topics whose differences a comparison describes.
const maxDifferences = 1000

// load reads the items of the server's records.
func (c *comparison) load() error {
	return c.server(func(all iter.Seq2[fragment.Record, error]) (err error) {
		if c.theirs != nil { // a second reading of the map
			err = c.theirs.Close()
		}
		if err == nil {
			c.theirs, c.v.Topics, c.v.Associations, err = c.set("-server", all)
		}
		return err
	})
}

// compare compares a source with the server's map, which is loaded, and returns the digest of both, "" where they
// differ. Where the source has a digest, that must agree with its records: then only where it is another one, the
// records are read again.
func (c *comparison) compare(here fragment.Source) (digest string, err error) {
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
	return c.differences(here)
}

// differences finds the differences, topic by topic. It returns the digest if there are none.
func (c *comparison) differences(here fragment.Source) (digest string, err error) {
	mine, _, _, err := c.set("-here", fragment.Records(here))
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
			c.v.More++
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

// set returns the items of records, and the numbers of topics and associations.
func (c *comparison) set(suffix string,
	all iter.Seq2[fragment.Record, error]) (s *statedigest.Set, topics, associations int, err error) {
	s = statedigest.NewSet(c.path+suffix, cmp.Or(c.limits.Memory, 16<<20))
	for r, err := range all {
		if err == nil {
			err = c.ctx.Err()
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

// describe describes the differences of the sides about some topics.
func (c *comparison) describe(here fragment.Source, differ map[fragment.Ref]bool) error {
	var server *merge.Memory // the records about these topics
	err := c.server(func(all iter.Seq2[fragment.Record, error]) error {
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
		c.v.Differences = append(c.v.Differences,
			Difference{TopicSI: string(topic), Here: without(mine, theirs), Server: without(theirs, mine)})
	}
	return nil
}

// without returns the lines of a that are not in b.
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
