package words

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/titles"
)

// A label that is a resource (SKOS-XL) is a topic. The index has it under its text and does not include associations.
// Readers are shown the topic that has the label.

// LabelProperties are the properties that lead to labels which are resources: to the preferred ones first. A topic is
// found by hidden ones, too.
var LabelProperties = append(slices.Clone(fragment.LabelProperties), "http://www.w3.org/2008/05/skos-xl#hiddenLabel")

// mostPlayed is the number of associations of a label, or of a topic that has it, that are read.
const mostPlayed = 1000

// literalForm returns the text of a label that is a resource; nil if t is none.
func literalForm(t *fragment.Topic) *fragment.Occurrence {
	for i := range t.Occurrences {
		if t.Occurrences[i].Type == titles.LiteralForm {
			return &t.Occurrences[i]
		}
	}
	return nil
}

// Labelled returns the topics that have a label by one of some properties; none if t is no label.
func Labelled(in fragment.Lookup, t *fragment.Topic, properties ...fragment.Ref) ([]fragment.Ref, error) {
	if literalForm(t) == nil {
		return nil, nil
	}
	return players(in, t.TopicSI(), fragment.RDFSubject, properties)
}

// players returns the players of a role in the associations of some types in which a topic plays.
func players(in fragment.Lookup, self, role fragment.Ref, types []fragment.Ref) (all []fragment.Ref, err error) {
	n := 0
	for a, err := range in.AssociationsOf(self, fragment.AsPlayer) {
		if err != nil {
			return nil, err
		}
		for _, r := range a.Roles {
			if r.Type == role && r.Player != self && slices.Contains(types, a.Type) {
				all = append(all, r.Player)
			}
		}
		if n++; n == mostPlayed {
			break
		}
	}
	return all, nil
}

// hits returns the topics that a match finds: the topic itself, or the topics that it is a label of. Each topic is
// found once, by the best match among its own statements and its labels.
func (l *looking) hits(q Query, t *fragment.Topic, m Match) (all []Hit, err error) {
	if has, err := l.names.HaveLabels(); !has || err != nil {
		return []Hit{{Topic: t, Match: m}}, err
	}
	topics, err := Labelled(l, t, LabelProperties...)
	label := t.TopicSI()
	if len(topics) == 0 {
		topics, label = []fragment.Ref{label}, ""
	}
	for i := 0; i < len(topics) && err == nil; i++ {
		var topic *fragment.Topic
		if topic, err = l.Topic(topics[i]); topic == nil {
			continue
		}
		own, fits := q.Match(topic)
		better := label != "" && fits && own.Compare(m) <= 0
		if !better {
			better, err = l.betterLabel(q, topics[i], label, m)
		}
		if !better {
			all = append(all, Hit{Topic: topic, Match: m, Label: label})
		}
	}
	return all, err
}

// betterLabel reports whether a label of a topic matches better than another label, or, if that is "", than the topic's
// own texts.
func (l *looking) betterLabel(q Query, topic, label fragment.Ref, m Match) (better bool, err error) {
	has, err := l.names.HaveLabels()
	if !has || err != nil {
		return false, err
	}
	labels, err := players(l, topic, fragment.RDFObject, LabelProperties)
	for n := 0; n < len(labels) && !better && err == nil; n++ {
		better, err = l.better(q, labels[n], label, m)
	}
	return better, err
}

// better reports whether a label matches better than another one, or, if that is "", than the topic's own texts.
func (l *looking) better(q Query, other, label fragment.Ref, m Match) (bool, error) {
	t, err := l.Topic(other)
	if t == nil || err != nil {
		return false, err
	}
	by, fits := q.Match(t)
	order := by.Compare(m)
	return fits && (order < 0 || order == 0 && other < label), nil
}

// NameIn is [fragment.Topic.NameIn], or the text of a label that is a resource.
func NameIn(t *fragment.Topic, tag string) (name string, ok bool) {
	if name, ok = t.NameIn(tag); ok {
		return name, true
	}
	if form := literalForm(t); form != nil && languageOf(form.Scope) == tag {
		return form.Value, true
	}
	return "", false
}
