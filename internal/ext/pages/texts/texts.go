// Package texts has all that people read on pages, in English: a template for each page, with its sentences, and the
// words and messages that code puts into pages. Whoever translates the pages, or edits how they speak, needs this
// folder alone.
package texts

import "embed"

// Layout is the frame of all pages, and Plot a figure over time on one.
//
//go:embed layout.html
var Layout string

//go:embed plot.html
var Plot string

// Pages are the templates of pages: those of a server, those of a node, and those of a client's folder alone.
//
//go:embed server/*.html node/*.html ui/*.html
var Pages embed.FS
