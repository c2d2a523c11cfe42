package xtm

import (
	"errors"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// resolved is a reference and the result of resolving it against its base.
type resolved struct {
	base, ref string
	locator   tmdm.Locator
}

// locator resolves a reference against the base of the current element.
// Documents refer to the same things again and again.
func (d *Decoder) locator(ref []byte) tmdm.Locator { return d.checked(d.cached(ref), ref) }

// checked returns the locator that ref was resolved to, unless it is too long. The part that its base has added
// counts.
func (d *Decoder) checked(l tmdm.Locator, ref []byte) tmdm.Locator {
	if len(l) > d.limits.Locator {
		d.failLimit("a locator of %d bytes is too long (%d at most): %s", len(l), d.limits.Locator, excerpt(l))
		return ""
	}
	d.grow(len(l) - len(ref))
	return l
}

// grow counts bytes that are not written in the document. Too many end the
// reading, also where problems are collected.
func (d *Decoder) grow(n int) {
	if n <= 0 {
		return
	}
	if err := d.xml.Grow(n); err != nil && d.err == nil {
		d.err = d.scanError(err)
	}
}

// cached is resolve for a reference that may have been seen before.
func (d *Decoder) cached(ref []byte) tmdm.Locator {
	if len(ref) == 0 {
		return d.resolve(ref)
	}
	base := d.bases[len(d.bases)-1].base
	n := len(ref)
	known := &d.resolved[(uint(ref[n-1])*31+uint(ref[n/2])*7+uint(ref[max(n-2, 0)])+uint(n))%uint(len(d.resolved))]
	if known.ref == string(ref) && known.base == base {
		return known.locator
	}
	l := d.resolve(ref)
	if l != "" {
		known.base, known.locator = base, l
		if ref[0] == '#' && len(l) == len(base)+n {
			known.ref = string(l[len(base):])
		} else {
			known.ref = string(ref)
		}
	}
	return l
}

// resolve is locator for a reference that is not likely to be seen again.
func (d *Decoder) resolve(ref []byte) tmdm.Locator {
	base := d.bases[len(d.bases)-1].base
	// Most references name an element of the same document; the base is in
	// normal form already.
	if len(ref) > 0 && ref[0] == '#' && isPlain(ref) {
		return tmdm.Locator(base + string(ref))
	}
	return d.resolveAny(base, string(ref))
}

// identity resolves a locator that identifies an item of the map.
func (d *Decoder) identity(ref []byte) tmdm.Locator { return d.checked(d.resolveOnce(ref), ref) }

// value resolves an IRI that is a value. It may be long, as data: URIs are.
func (d *Decoder) value(ref []byte) string {
	l := d.resolveOnce(ref)
	d.grow(len(l) - len(ref))
	return string(l)
}

func (d *Decoder) resolveOnce(ref []byte) tmdm.Locator {
	if len(ref) > 0 && ref[0] == '#' && isPlain(ref) {
		return tmdm.Locator(d.string(d.bases[len(d.bases)-1].base, ref))
	}
	return d.resolveAny(d.bases[len(d.bases)-1].base, d.string("", ref))
}

// itemIdentifier returns the locator that the id of an element makes.
func (d *Decoder) itemIdentifier(id []byte) tmdm.Locator {
	base := d.bases[len(d.bases)-1]
	if isPlain(id) {
		return d.checked(tmdm.Locator(d.string(base.item, id)), id)
	}
	return d.checked(d.resolveAny(base.base, "#"+string(id)), id)
}

func (d *Decoder) resolveAny(base, ref string) tmdm.Locator {
	l, err := iri.Resolve(base, strings.Trim(ref, " \t\r\n"))
	if err != nil {
		d.fail("%q is not a usable reference: %s", excerpt(ref), reasonOf(err))
		return ""
	}
	return tmdm.Locator(l)
}

func isPlain(ref []byte) bool {
	for _, c := range ref {
		if c == '%' || c <= ' ' || c == 0x7F {
			return false
		}
	}
	return true
}

func reasonOf(err error) string {
	var e *iri.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
