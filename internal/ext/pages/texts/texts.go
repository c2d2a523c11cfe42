// Package texts has all that people read on pages: a template for each page, with its sentences in English, the words
// and messages that code puts into pages, and what other languages have for all of them. Whoever translates the pages,
// or edits how they speak, needs this folder alone.
package texts

import "embed"

// Pages are the templates of pages: the frame of all, a figure over time, those of a server, those of a node, and those
// of a client's folder alone.
//
//go:embed *.html server/*.html node/*.html ui/*.html
var Pages embed.FS
