// Package sim simulates nodes: real stores over the engine in memory or in a database, real servers and clients, and a
// simulated clock and network. Each run has 2 to 8 nodes that publish, edit and follow each other, reject claims of
// others, and derive collections, while links fail, answers are lost, truncated or stale, processes crash, and old
// backups are restored. In the end, without faults:
//
//   - rounds soon bring nothing new, and in 100 more rounds (in the long form: of each node) no node publishes;
//   - each followed collection is as at its origin, and proven by the state digest;
//   - each merged view is the merge of the collections, without the claims that the node rejects, as computed by an
//     oracle that is independent of package merge;
//   - so is each derived collection, and a new reader of its feed gets its state.
//
// The seed determines all events of a run:
//
//	go test ./internal/sim -run 'TestSim$' -rounds 1 -seed 17
//
// A failed run prints that command. With -engine postgres each node has a store in a database. The long form has 5,000
// runs:
//
//	go test ./internal/sim -run 'TestSim$' -long -timeout 2h
package sim
