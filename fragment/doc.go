// Package fragment cuts topic maps into pieces that travel: the records of a
// source, topic map fragments, snapshots, and what changed between two states.
//
// A source is one map as its publisher states it. Its records are a [Topic] for
// each topic and an [Association] for each association, and they refer to topics
// by one subject identifier each, the topic's TopicSI (a [Ref]). A record is
// therefore meaningful without the rest of the map: it can be compared, stored,
// sent and replaced on its own. [Source] reads the records of one state, wherever
// they live; and [Map] shows a tmdm.TopicMap that way.
//
//   - [Write] and [WriteSnapshot] turn records into XTM, [Read] and
//     [ReadSnapshot] turn XTM into records. Package fragment/stream reads large
//     snapshots in little memory.
//   - [NameTopics] gives every topic of a map that is to be published its TopicSI.
//   - [Diff] and [Delete] say what a new state changes: the records to write
//     and the feed entries to publish.
//
// The update algorithm that a subscriber runs on records is in package merge.
package fragment
