package scan

// capture is the part of the document that is kept as it stands.
type capture struct {
	on   bool
	from int64  // offset in the document of the first byte that is not in held
	held []byte // bytes that have left the window
}

// Capture records the document unchanged from after the event on, until [Scanner.Captured]. Call it at the start of an
// element. The recording is in memory, and in UTF-8. References to declared entities are not expanded.
func (s *Scanner) Capture() {
	w := s.document()
	s.captured = capture{on: true, from: s.base + int64(w.pos), held: s.captured.held[:0]}
}

// Captured ends the recording of [Scanner.Capture], and returns the bytes up to the event. They are valid until the
// next call of Capture. Prefixes may be declared outside of them.
func (s *Scanner) Captured() []byte {
	s.keepTo(s.eventAt)
	s.captured.on = false
	return s.captured.held
}

// keepTo records the bytes before an offset, while the window still has them.
func (s *Scanner) keepTo(offset int64) {
	c := &s.captured
	if c.on && offset > c.from {
		c.held = append(c.held, s.document().buf[c.from-s.base:offset-s.base]...)
		c.from = offset
	}
}
