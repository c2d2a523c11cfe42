// Package atompmh reads feeds of the Atom Feed Protocol for Metadata Harvesting.
package atompmh
