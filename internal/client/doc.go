// Package client keeps a store in step with the collections of other servers.
//
// [Client.Subscribe] finds a collection's feeds and pins its source locator
// prefix; [Client.Sync] does one round: a clean start from the newest snapshot
// where there is no state yet, then the fragments that came since, in the order
// of time; [Client.Verify] proves a source equal to the server's map. walk.go reads
// the feed back to where the last round ended, update.go applies what it found. Sources
// that publish records rather than fragments take another way: the packages below
// internal/follow find out what has become of them, records.go and recordsapply.go do the
// same to the source; internal/fetch alone talks to the network.
//
// The packages below this one are about what a round is not: which sources there are to follow
// (discover), rounds again and again (watch), how subscriptions are (status), what a node says
// itself (local), and what all sources say together (merged). In entries a round keeps what it
// is to handle.
package client
