// Package txn reads and changes the rows of an engine (package kv) in transactions.
//
// Every change is one [DB.Update]: it collects its changes over a snapshot of the
// rows and commits them at once, if nobody else has committed meanwhile. A
// crash leaves the state before or after, never between. What the rows mean is the
// affair of the packages above.
package txn
