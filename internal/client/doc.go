// Package client updates a store from the collections of other servers.
//
// [Client.Subscribe] finds a collection's feeds and pins its source locator prefix; [Client.Sync] does one round: a
// clean start from the newest snapshot if there is no state yet, then the fragments since, in the order of time;
// [Client.Verify] proves a source equal to the server's map. walk.go reads the feed back to the end of the last round,
// update.go applies its changes. Sources that publish records rather than fragments are different: the packages below
// internal/follow find their changes, records.go and recordsapply.go apply them; only internal/fetch uses the network.
//
// The packages below this one have the parts outside of a round: finding sources (discover), repeated rounds (watch),
// the state of subscriptions (status), the node's own statements (local), and the merged view of all sources (merged).
// A round keeps its pending entries in entries.
package client
