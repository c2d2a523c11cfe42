package fragment

import (
	"iter"

	"github.com/tmshare/tmshare/tmdm"
)

// Identifying describes a [Source] that lists its subject identifiers. A caller that names a whole map reads them at
// once, which costs far less than asking for each.
type Identifying interface {
	// SubjectIdentifiers iterates over the subject identifiers that begin with prefix, and reports of each whether it
	// is the TopicSI of its topic.
	SubjectIdentifiers(prefix string) iter.Seq2[SubjectIdentifier, error]
}

// SubjectIdentifier is a subject identifier of a topic of a source.
type SubjectIdentifier struct {
	Locator   tmdm.Locator
	IsTopicSI bool
}

// published looks up subject identifiers in the published state.
type published interface {
	// isAssigned reports whether si, of the form that topics are assigned, is one of a topic.
	isAssigned(si tmdm.Locator) (bool, error)

	// isTopicSI reports whether si is the TopicSI of a topic.
	isTopicSI(si tmdm.Locator) (bool, error)
}

// publishedIn returns the published state for naming the topics of tm.
func publishedIn(tm *tmdm.TopicMap, sp string, prior Source) (published, error) {
	if prior == nil {
		return nothing{}, nil
	}
	list, ok := prior.(Identifying)
	if !ok {
		return asked{prior}, nil
	}
	l := listed{prior: list, tm: tm, assigned: map[tmdm.Locator]bool{}}
	for si, err := range list.SubjectIdentifiers(sp + "topic/") {
		if err != nil {
			return nil, err
		}
		l.assigned[si.Locator] = true
	}
	return &l, nil
}

// nothing is an empty published state.
type nothing struct{}

func (nothing) isAssigned(tmdm.Locator) (bool, error) { return false, nil }
func (nothing) isTopicSI(tmdm.Locator) (bool, error)  { return false, nil }

// asked queries a source for each topic.
type asked struct{ Source }

func (a asked) isAssigned(si tmdm.Locator) (bool, error) {
	t, err := a.Topic(si)
	return t != nil, err
}

func (a asked) isTopicSI(si tmdm.Locator) (bool, error) {
	t, err := a.Topic(si)
	return t != nil && t.TopicSI() == si, err
}

// listed holds a source's identifiers: the assigned ones, and, loaded on first use, the TopicSIs of topics with several
// identifiers.
type listed struct {
	prior    Identifying
	tm       *tmdm.TopicMap
	assigned map[tmdm.Locator]bool
	topicSIs map[tmdm.Locator]bool
}

func (l *listed) isAssigned(si tmdm.Locator) (bool, error) { return l.assigned[si], nil }

func (l *listed) isTopicSI(si tmdm.Locator) (bool, error) {
	if l.topicSIs == nil {
		l.topicSIs = map[tmdm.Locator]bool{}
		for si, err := range l.prior.SubjectIdentifiers("") {
			if err != nil {
				return false, err
			}
			if !si.IsTopicSI {
				continue
			}
			if t := l.tm.TopicBySubjectIdentifier(si.Locator); t != nil && len(t.SubjectIdentifiers()) > 1 {
				l.topicSIs[si.Locator] = true
			}
		}
	}
	return l.topicSIs[si], nil
}
