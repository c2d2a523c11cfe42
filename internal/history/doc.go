// Package history looks back: at the states that a collection had and at what changed between them, as
// far as its log and its snapshots tell.
//
// The state at a time has, of each topic key, what the last entry up to that time says. A topic without a
// later entry is as it is now. What a later entry superseded is in the fragment that is kept with the entry
// before it. Two kinds of fragments are not kept: those of entries that were pruned, and those that were too large when
// their topic changed. The topic can then be had from a snapshot that was taken between the two entries,
// if one is kept.
package history
