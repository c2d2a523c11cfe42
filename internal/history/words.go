package history

import (
	"bytes"
	"context"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// InWords returns the statements of only the version of a topic before a change, and those of only the version after
// it; nil is a version without the topic. Both versions may omit common statements, except the identifiers.
func InWords(ctx context.Context, sp string, ref fragment.Ref, before,
	after *fragment.Fragment) (removed, added []mapdiff.Statement, err error) {
	a, err := topicMap(ctx, sp, before)
	if err != nil {
		return nil, nil, err
	}
	b, err := topicMap(ctx, sp, after)
	if err != nil {
		return nil, nil, err
	}
	all, err := mapdiff.Compare(a, b, tmdm.Locator(sp))
	if err != nil {
		return nil, nil, err
	}
	var topics []*tmdm.Topic
	for _, tm := range []*tmdm.TopicMap{a, b} {
		if t := tm.TopicBySubjectIdentifier(ref); t != nil {
			topics = append(topics, t)
		}
	}
	label := mapdiff.Label(tmdm.Locator(sp), topics...)
	for i := range all {
		if all[i].Topic == label {
			return all[i].A, all[i].B, nil
		}
	}
	return nil, nil, nil
}

// topicMap returns the statements about a topic as a map.
func topicMap(ctx context.Context, sp string, f *fragment.Fragment) (*tmdm.TopicMap, error) {
	if f == nil {
		return tmdm.New(), nil
	}
	var m merge.Memory
	if err := m.PutTopic(f.Topic); err != nil {
		return nil, err
	}
	for _, a := range f.Associations {
		if err := m.PutAssociation(a); err != nil {
			return nil, err
		}
	}
	var doc bytes.Buffer
	form := fragment.Form{Version: xtm.V21, SP: sp, OmitInstances: true, ContentOnly: true}
	if err := fragment.Write(&doc, &m, f.Topic.TopicSI(), form); err != nil {
		return nil, err
	}
	return xtm.Read(ctx, &doc, xtm.Options{Base: tmdm.Locator(sp)})
}
