// Package scan reads XML 1.0 (fifth edition) with Namespaces in XML 1.0
// (third edition): a pull scanner that turns a document into starts and ends of
// elements and text, in constant memory, without an allocation per token.
//
// It is a non-validating processor (XML 1.0 §5.1) that enforces every well-formedness and namespace constraint. It
// reads the internal DTD subset: it expands entities under a limit, and adds defaults of attributes and normalises them
// by type. It opens neither the external subset nor an external entity. Because input may be hostile, [Limits] bound
// the whole cost of a document.
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
// scanner.go determines the kind of the next token and calls tag.go, text.go, misc.go or dtd.go for it. Each reads one
// token from the window. If the window ends too early, it returns errShort without any change, Next reads more, and the
// token is read again from its beginning. The bytes after the window are zero, which is no character of XML: so the
// inner loops (swar.go) look for the end of a run only, never for the end of the window.
//
// Names are validated at their first occurrence, and recognised later (names.go). A prefix has its present namespace
// (namespace.go), so resolving a name takes one pointer.
//
// The text of an entity is a separate window on a stack (entity.go).
package scan
