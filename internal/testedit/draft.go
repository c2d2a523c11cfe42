package testedit

import (
	"fmt"

	"github.com/tmshare/tmshare/tmdm"
)

// Draft is a map under construction. Topics are created by their subject identifiers; the first is the
// TopicSI of a topic that is new. What cannot be done ends the test program.
type Draft struct{ *tmdm.TopicMap }

// Topic returns the topic with the first identifier, and gives it the others.
func (d Draft) Topic(sis ...tmdm.Locator) *tmdm.Topic {
	t := d.CreateTopicBySubjectIdentifier(sis[0])
	for _, si := range sis[1:] {
		must(t.AddSubjectIdentifier(si))
	}
	return t
}

// Named is Topic, and gives the topic a name.
func (d Draft) Named(value string, sis ...tmdm.Locator) *tmdm.Topic {
	t := d.Topic(sis...)
	t.AddName(value, nil)
	return t
}

// Associate relates topics by an association whose type stands for all roles.
func (d Draft) Associate(typ tmdm.Locator, players ...*tmdm.Topic) *tmdm.Association {
	a := d.CreateAssociation(d.Topic(typ))
	for _, p := range players {
		a.AddRole(d.Topic(typ), p)
	}
	return a
}

// Reify makes the topic with the identifier the reifier of c.
func (d Draft) Reify(c tmdm.Reifiable, si tmdm.Locator) { must(tmdm.SetReifier(c, d.Topic(si))) }

// SmallMap returns a map in which random edits soon meet each other. more are those of its topics that
// play in its association, beside two that do always.
func SmallMap(sp string, more ...int) *tmdm.TopicMap {
	tm := tmdm.New()
	var topics []*tmdm.Topic
	for i, si := range []tmdm.Locator{"http://a", "http://b", "http://c", "http://d", ""} {
		topic := tm.CreateTopic()
		must(tmdm.AddItemIdentifier(topic, tmdm.Locator(fmt.Sprintf("%s#t%d", sp, i))))
		if si != "" {
			must(topic.AddSubjectIdentifier(si))
		}
		topics = append(topics, topic)
	}
	topics[0].AddName("class", nil)
	topics[1].AddType(topics[0])
	topics[2].AddType(topics[0])
	a := tm.CreateAssociation(topics[3])
	for _, i := range append([]int{1, 4}, more...) {
		a.AddRole(topics[3], topics[i])
	}
	return tm
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
