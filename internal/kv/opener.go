package kv

import (
	"context"
	"log/slog"
)

// Opener opens engines that have addresses, such as databases that several processes share.
type Opener struct {
	Schemes []string // of the addresses, as in SCHEME://…
	Form    string   // "write SCHEME://…": the syntax of an address, and the source of its password
	// Open opens an engine. It refuses an address with a password, because messages would show it.
	Open func(ctx context.Context, address string, o OpenOptions) (Engine, error)
}

// OpenOptions are the options for opening an engine.
type OpenOptions struct {
	Logger   *slog.Logger
	ReadOnly bool // write nothing; otherwise it is an error if writing is not allowed
	Make     bool // create missing parts of the engine, such as tables
}
