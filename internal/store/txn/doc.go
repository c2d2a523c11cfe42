// Package txn reads and changes the rows of an engine (package kv) in transactions.
//
// Every change is one [DB.Update]: it collects its changes over a snapshot of the rows and commits them at once, unless
// another commit conflicts. A crash leaves the state before or after, never between. The packages above define the
// meaning of the rows.
package txn
