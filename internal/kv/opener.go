package kv

import (
	"context"
	"log/slog"
)

// Opener opens engines that have addresses, such as databases that several processes share.
type Opener struct {
	Schemes []string // of the addresses, as in SCHEME://…
	Form    string   // says how to write an address, and where its password comes from
	// Open opens an engine. It refuses an address with a password in it, which messages would show.
	Open func(ctx context.Context, address string, o OpenOptions) (Engine, error)
}

// OpenOptions say for what an engine is opened.
type OpenOptions struct {
	Logger   *slog.Logger
	ReadOnly bool // nothing is written; else it is an error where that is not allowed
	Make     bool // what the engine needs is made where it is missing, such as tables
}
