package scan

// Options are the options for reading a document. The zero value is useful.
type Options struct {
	// URI names the document in errors. It is not opened.
	URI string

	// ContentType is the Content-Type of the document. Its charset takes precedence over that in the document (RFC 7303
	// §3.2).
	ContentType string

	Limits Limits

	// Namespaces are prefixes that hold where the document does not declare them:
	// for documents that rely on a DTD to do so.
	Namespaces map[string]string

	// Assumed, if not nil, is called for each of Namespaces that a document uses
	// undeclared, at the first element that does so.
	Assumed func(prefix string, line, column int)

	// NoDTD makes a document type declaration an error.
	NoDTD bool

	// SkipUnread omits references to entities that are external, or that may be declared in a part of the DTD that is
	// not read (XML 1.0 §4.4.3, Included If Validating). Otherwise they are errors, because their replacement text
	// would be missing from the document without notice.
	SkipUnread bool

	// Misc makes Next report comments and processing instructions.
	Misc bool

	// BufferSize is the maximum size of the window in bytes, unless a token is longer; default 64 KiB. Small documents
	// need less.
	BufferSize int
}

// Limits bound the cost of a document. A field that is zero or less means the default.
type Limits struct {
	Depth       int   // elements inside of each other, and groups in a content model; default 1,000
	Attributes  int   // of one element, with namespace declarations and defaults; default 1,000
	Name        int   // bytes of a name; default 4,096
	Token       int   // bytes of one tag, text, comment, declaration; default 16 MiB
	Bytes       int64 // bytes of the document as they are read; default: no limit
	Namespaces  int   // declarations of namespaces in force at one place; default 1,000
	DTD         int   // bytes of the internal DTD subset; default 1 MiB
	EntityDepth int   // entities inside of each other; default 40

	// Expansion is the number of bytes that entities and defaults of attributes may add to a document, in addition to
	// as many as were read of it; default 8 MiB.
	Expansion int64

	// Growth is the number of bytes that the caller may generate from the document (see [Scanner.Grow]), in addition to
	// growthFactor times as many as were read of it; default 8 MiB.
	Growth int64
}

const growthFactor = 16

const (
	defaultBuffer = 64 << 10
	firstBuffer   = 2 << 10 // initial size of a window
	leastBuffer   = 32
	mostScratch   = 1 << 20 // limit of memory that a scanner keeps for the next document
)

func (l Limits) withDefaults() Limits {
	or(&l.Depth, 1000)
	or(&l.Attributes, 1000)
	or(&l.Name, 4096)
	or(&l.Token, 16<<20)
	or(&l.Namespaces, 1000)
	or(&l.DTD, 1<<20)
	or(&l.EntityDepth, 40)
	or(&l.Expansion, 8<<20)
	or(&l.Growth, 8<<20)
	return l
}

func or[T int | int64](field *T, otherwise T) {
	if *field <= 0 {
		*field = otherwise
	}
}
