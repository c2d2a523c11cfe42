package xtm

import (
	"fmt"
	"strings"
)

// pos returns where the current event begins.
func (d *Decoder) pos() Position {
	line, column := d.xml.Position()
	return Position{line, column}
}

func (d *Decoder) errorAt(p Position, format string, args ...any) *SyntaxError {
	return &SyntaxError{URI: d.o.name(), Line: p.Line, Column: p.Column, Reason: fmt.Sprintf(format, args...)}
}

// fail reports an error at the current position. Reading ends, unless problems are collected.
func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.failAt(d.pos(), format, args...)
	}
}

func (d *Decoder) failAt(p Position, format string, args ...any) {
	d.report(d.errorAt(p, format, args...))
}

// failLimit is fail for an exceeded limit.
func (d *Decoder) failLimit(format string, args ...any) {
	err := d.errorAt(d.pos(), format, args...)
	err.Err = ErrLimit
	d.report(err)
}

// tolerate reports a broken rule at the current position, and fails if reading is strict.
func (d *Decoder) tolerate(rule Rule, format string, args ...any) {
	if d.err != nil {
		return
	}
	err := d.errorAt(d.pos(), format, args...)
	err.Rule = rule
	if d.o.Lenient {
		d.o.tolerated(err)
	} else {
		d.report(err)
	}
}

func (d *Decoder) report(err *SyntaxError) {
	if d.err != nil {
		return
	}
	if d.o.Problem == nil {
		d.err = err
		return
	}
	d.broken = true
	d.o.Problem(err)
}

// unexpected fails because of the element that started, and passes over it.
func (d *Decoder) unexpected(parent string) {
	d.fail("<%s> cannot hold <%s>", parent, d.xml.Name().Local)
	d.skip()
}

// excerpt returns the beginning of a text for a message.
func excerpt[T ~string | []byte](text T) string {
	s := strings.TrimSpace(string(text[:min(len(text), 400)]))
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
