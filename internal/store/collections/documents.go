package collections

// The fragments feed is divided into documents of a fixed number of entries. When the number changes, existing
// documents keep their boundaries: a segment is a sequence of documents of the same size.

// Segment is a row of documents of the fragments feed that have the same size.
type Segment struct {
	Document uint64 // the first; documents are numbered from 1
	Seq      uint64 // of its first entry
	Size     int    // entries in each
}

func (c *Collection) segments() []Segment {
	if len(c.Segments) == 0 {
		return []Segment{{1, 1, c.DocumentSize}}
	}
	return c.Segments
}

// OpenDocument returns the number of the document that the next entry may still
// go into, or that the last one has filled.
func (c *Collection) OpenDocument() uint64 { return c.DocumentOf(max(c.Head, 1)) }

// DocumentOf returns the number of the document with the entry seq.
func (c *Collection) DocumentOf(seq uint64) uint64 {
	segments := c.segments()
	i := len(segments) - 1
	for i > 0 && segments[i].Seq > seq {
		i--
	}
	s := segments[i]
	return s.Document + (seq-s.Seq)/uint64(s.Size)
}

// Document returns the sequence of the first entry of document n, and the number of its entries when it is full.
func (c *Collection) Document(n uint64) (first, size uint64) {
	segments := c.segments()
	i := len(segments) - 1
	for i > 0 && segments[i].Document > n {
		i--
	}
	s := segments[i]
	return s.Seq + (n-s.Document)*uint64(s.Size), uint64(s.Size)
}

// ResizeDocuments sets the number of entries of documents after the open one.
func (c *Collection) ResizeDocuments(size int) {
	segments, open := c.segments(), c.OpenDocument()
	for len(segments) > 1 && segments[len(segments)-1].Document > open {
		segments = segments[:len(segments)-1]
	}
	first, full := c.Document(open)
	if segments[len(segments)-1].Size != size {
		segments = append(segments[:len(segments):len(segments)], Segment{open + 1, first + full, size})
	}
	c.Segments = segments
}
