// Package fragment divides topic maps into parts for exchange: the records of a source, topic map fragments, snapshots,
// and the changes between two states.
//
// A source is one map as its publisher states it. Its records are a [Topic] for each topic and an [Association] for
// each association, and they refer to topics by one subject identifier each, the topic's TopicSI (a [Ref]). So a record
// has a meaning without the rest of the map: it can be compared, stored, sent and replaced on its own. A [Source] reads
// the records of one state; a [Map] is the source of a tmdm.TopicMap.
//
//   - [Write] and [WriteSnapshot] turn records into XTM, [Read] and
//     [ReadSnapshot] turn XTM into records. Package fragment/stream reads large
//     snapshots in little memory.
//   - [NameTopics] gives every topic of a map that is to be published its TopicSI.
//   - [Diff] and [Delete] compute the changes of a new state: the records to write
//     and the feed entries to publish.
//
// Package merge has the update algorithm of subscribers.
package fragment
