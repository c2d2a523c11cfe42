// Package rendered has the bytes of fragments, and of the record forms of topics, that are
// stored with the entries of a log: rendered in each form, told apart by digests, and packed.
package rendered
