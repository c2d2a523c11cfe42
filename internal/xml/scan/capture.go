package scan

// capture is the part of the document that is kept as it stands.
type capture struct {
	on   bool
	from int64  // offset in the document of what is not in held yet
	held []byte // what the window has given up
}

// Capture keeps the document as it stands from behind the event on, until [Scanner.Captured]. Call it at the start of
// an element. What it keeps is in memory, and in UTF-8. References to entities that the document declares are kept as
// they stand.
func (s *Scanner) Capture() {
	w := s.document()
	s.captured = capture{on: true, from: s.base + int64(w.pos), held: s.captured.held[:0]}
}

// Captured ends what [Scanner.Capture] began, and returns what stands up to the event. It holds until the next call of
// Capture. Prefixes may be declared outside of it.
func (s *Scanner) Captured() []byte {
	s.keepTo(s.eventAt)
	s.captured.on = false
	return s.captured.held
}

// keepTo keeps what is captured before an offset. The window has it still.
func (s *Scanner) keepTo(offset int64) {
	c := &s.captured
	if c.on && offset > c.from {
		c.held = append(c.held, s.document().buf[c.from-s.base:offset-s.base]...)
		c.from = offset
	}
}
