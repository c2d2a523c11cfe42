// Package scan reads XML 1.0 (fifth edition) with Namespaces in XML 1.0
// (third edition): a pull scanner that turns a document into starts and ends of
// elements and text, in constant memory, without an allocation per token.
//
// It is a non-validating processor (XML 1.0 §5.1) that enforces every
// well-formedness and namespace constraint. It reads the internal DTD subset:
// entities are expanded under a limit, attributes get their defaults and are
// normalised by their types. It opens nothing: neither the external subset nor
// an external entity. Input is hostile until proven otherwise, so everything
// that a document may cost has a bound in [Limits].
//
//	s := scan.NewScanner(file, scan.Options{URI: "opera.xtm"})
//	for {
//		kind, err := s.Next()
//		if err == io.EOF {
//			break
//		}
//		…
//	}
//
// # Layers
//
//	raw bytes ─▶ encoding.go, transcode.go ─▶ UTF-8 ─▶ input.go (a window) ─▶ scanner.go ─▶ events
//
// scanner.go decides what begins here and calls tag.go, text.go, misc.go or
// dtd.go for it. Each reads one token out of the window. Where the window ends
// too early, it gives up with errShort without having changed anything, Next
// reads more, and the token is read again from its beginning. The bytes behind
// the window are zero, which no character of XML is: the inner loops (swar.go)
// look for the end of a run only, never for the end of the window.
//
// Names are checked when they are seen for the first time, and recognised after
// that (names.go). A prefix knows the namespace that it stands for at the
// moment (namespace.go), so a name is resolved by following one pointer.
//
// The text of an entity is a window of its own on a stack (entity.go).
package scan
