// Package maps holds the example topic maps of the project, for the demo and for tests.
package maps

import _ "embed"

// EGov is egov.xtm: the government services of the Republic of Nordhavn, an
// invented state, in XTM 1.0. The comment at its top lists what it shows.
//
//go:embed egov.xtm
var EGov []byte

// Libraries is libraries.xtm: the public libraries of the same republic, in
// XTM 1.0. It shares subject identifiers with [EGov], and says partly the same
// and partly different things about the topics that they identify.
//
//go:embed libraries.xtm
var Libraries []byte
