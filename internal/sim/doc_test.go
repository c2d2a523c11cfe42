// Package sim is a simulation of nodes: real stores over the engine in memory or in a database, real servers and
// clients, and a clock and a network that are none. Each run has 2 to 8 nodes that publish, edit and follow each other,
// reject what others say, and derive collections from what they have, while links break, answers are lost, cut off or
// old, processes die, and old backups are put back. In the end, when nothing is wrong any more:
//
//   - rounds soon bring nothing more, and in 100 more rounds (in the long form: of everybody) nobody publishes anything;
//   - all that is followed is as its origin has it, and proven by the state digest;
//   - each merged view is what the collections say together, less what the node rejects, as an oracle says that knows
//     nothing of package merge;
//   - so is each derived collection, and who reads its feed from the beginning has it.
//
// All that happens in a run follows from its seed:
//
//	go test ./internal/sim -run 'TestSim$' -rounds 1 -seed 17
//
// A run that fails prints that command. With -engine postgres each node has a store in a database. The long form has
// 5,000 runs:
//
//	go test ./internal/sim -run 'TestSim$' -long -timeout 2h
package sim
