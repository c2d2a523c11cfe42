// Package pg is the engine that keeps the rows of a store in a database that speaks the
// protocol of PostgreSQL. Any number of processes share one store. It is the only package that
// knows that protocol.
//
// A store is a schema with three tables, which [Migrate] creates: the rows in the order of their
// keys, one row with the version of the present state, and the identifiers of the last commits.
// docs/engines.md lists the statements. None of them is PostgreSQL's alone.
package pg
