// Package client keeps a store in step with the collections of other servers.
//
// [Client.Subscribe] finds a collection's feeds and pins its source locator
// prefix; [Client.Sync] does one round: a clean start from the newest snapshot
// where there is no state yet, then the fragments that came since, in the order
// of time; [Client.Verify] proves a source equal to the server's map. walk.go reads
// the feed back to where the last round ended, update.go applies what it found. Sources
// that publish records rather than fragments take another way: package harvest finds out
// what has become of them, records.go and recordsapply.go do the same to the source;
// internal/fetch alone talks to the network.
package client
