package resourcesync

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/xml/read"
)

// manifestName is the name of the manifest in a package (Z39.99 §11.1.1, §13.1.1).
const manifestName = "manifest.xml"

// packed is the time of all files in a package: the earliest that ZIP can state. The manifest has the times of the
// resources.
var packed = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// PackageOptions are the options of a package. The zero value has the defaults.
type PackageOptions struct {
	// MaxBytes is the largest length of the ZIP file; default: no limit. Content of unknown length counts only when it is
	// written.
	MaxBytes int64
	Manifest Options
}

// PackageWriter writes a ZIP package of a dump, file by file: bitstreams under names made from their URIs, then the
// manifest. Equal content gives equal bytes. It is not safe for concurrent use.
type PackageWriter struct {
	zip       *zip.Writer
	out       *counter
	copy      io.ReadWriteSeeker
	manifest  *Writer
	max       int64
	files     int
	done      int64 // bytes of the files before the last one
	pending   int64 // unpacked bytes of the last file, which may be packed later
	directory int64 // bytes of the directory at the end
	err       error // the error that ended the package
}

// counter counts the bytes that are written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// NewPackageWriter begins a package. d is the head of its manifest: a Resource Dump Manifest or a Change Dump Manifest.
// manifest takes the copy of the manifest that a dump's link of relation contents leads to; it must be empty. Close
// reads the manifest from there, so that both copies are equal (Z39.99 §11.1, §13.1). Memory holds only the directory
// of the package.
func NewPackageWriter(w io.Writer, manifest io.ReadWriteSeeker, d Document,
	options PackageOptions) (*PackageWriter, error) {
	if d.Index || !kinds[d.Capability].manifest {
		return nil, &InvalidError{Element: "urlset/rs:md",
			Rule: fmt.Sprintf("%q is not the capability of a manifest", read.Clip(string(d.Capability)))}
	}
	m, err := NewWriter(manifest, d, options.Manifest)
	if err != nil {
		return nil, err
	}
	p := &PackageWriter{out: &counter{w: w}, copy: manifest, manifest: m, max: options.MaxBytes}
	if p.max <= 0 {
		p.max = math.MaxInt64
	}
	p.zip = zip.NewWriter(p.out)
	return p, nil
}

// Add adds an item and its bitstream. It sets the path, the length and the hashes in the manifest. If the item has a
// length or hashes, the content must agree, else the error is a *[MismatchError]. content is nil for a deletion.
//
// The error is [ErrFull] where the package or its manifest has no space for the item, and an *[InvalidError] where the
// item is invalid. After these nothing was written. The first item always has space, however long its content is. After
// other errors the package cannot be used.
func (p *PackageWriter) Add(item Item, content io.Reader) error {
	if p.err != nil {
		return p.err
	}
	deleted := item.Change == Deleted
	if deleted != (content == nil) {
		return &InvalidError{Element: "item (" + read.Clip(item.Loc) + ")", Rule: "deletions have no content, all else has"}
	}
	folder := "resources"
	if p.manifest.rules.changes {
		folder = "changes"
	}
	// The manifest must have space for the item as it will be, before its content is written.
	want := item.Representation
	item.Path = ""
	if !deleted {
		item.Path = p.path(folder, item.Loc)
		item.Hashes = []Hash{{MD5, strings.Repeat("0", 32)}, {SHA256, strings.Repeat("0", 64)}}
		if item.Length == 0 && !item.Empty {
			item.Length = math.MaxInt64
		}
	}
	if err := p.manifest.fits(&item); err != nil {
		return err
	}
	if p.manifest.Items() > 0 && packedAtMost(want.Length) > p.max-p.Bytes() {
		return ErrFull
	}
	if !deleted {
		if p.err = p.write(item.Loc, &item.Representation, &want, content); p.err != nil {
			return p.err
		}
	}
	p.err = p.manifest.Write(&item)
	return p.err
}

// AddLinked adds the bitstream of a resource that an item of a manifest links to, such as a patch (Z39.99 §14.4,
// Patching Content), and sets the path, the length and the hashes of the link. The caller then adds the item with the
// link. If that has no space, the file does no harm. Errors are as with Add.
func (p *PackageWriter) AddLinked(link *Link, content io.Reader) error {
	if p.err != nil {
		return p.err
	}
	filled, want := *link, link.Representation
	filled.Path = p.path("linked", link.Href)
	if rule := p.manifest.rules.checkLink(&filled); rule != "" {
		return &InvalidError{Element: "rs:ln", Rule: rule}
	}
	if p.files > 0 && packedAtMost(want.Length) > p.max-p.Bytes() {
		return ErrFull
	}
	if p.err = p.write(link.Href, &filled.Representation, &want, content); p.err == nil {
		*link = filled
	}
	return p.err
}

// write writes a file of the package, and sets its length and hashes in r. They must agree with those in want.
func (p *PackageWriter) write(uri string, r, want *Representation, content io.Reader) error {
	file, err := p.create(strings.TrimPrefix(r.Path, "/"))
	if err != nil {
		return err
	}
	fixity, check := NewFixity(), newFixityFor(want)
	if p.pending, err = io.Copy(io.MultiWriter(file, fixity, check), content); err != nil {
		return fmt.Errorf("packing %s: %w", uri, err)
	}
	fixity.Describe(r)
	return check.check(uri, want)
}

func (p *PackageWriter) create(name string) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: packed}
	h.SetMode(0o644)
	p.files++
	p.directory += int64(fileOverhead + len(name))
	file, err := p.zip.CreateHeader(h) // this packs the rest of the file before
	p.done, p.pending = p.out.n, 0
	return file, err
}

// fileOverhead is the number of bytes of a file in addition to its names and content: the directory entry, its extra
// fields for time and length, and the data descriptor.
const fileOverhead = 46 + 9 + 28 + 24

// packageOverhead bounds the bytes of a package in addition to its files: the end of the directory, the header of the
// manifest, and the buffer.
const packageOverhead = 8 << 10

// packedAtMost returns the largest length in bytes that packing can give content of a length.
func packedAtMost(length int64) int64 { return length + length>>10 + 256 }

// Items returns the number of items in the manifest.
func (p *PackageWriter) Items() int { return p.manifest.Items() }

// Bytes returns an upper bound of the length in bytes that the ZIP file would have if it were closed now.
func (p *PackageWriter) Bytes() int64 {
	return p.done + packedAtMost(p.pending) + packedAtMost(p.manifest.Bytes()) + p.directory + packageOverhead
}

// Close writes the manifest and ends the package. It closes neither the ZIP file
// nor the copy of the manifest.
func (p *PackageWriter) Close() error {
	if p.err == nil {
		p.err = p.close()
	}
	err := p.err
	p.err = errors.Join(err, errors.New("the package is closed"))
	return err
}

func (p *PackageWriter) close() error {
	if err := p.manifest.Close(); err != nil {
		return err
	}
	if _, err := p.copy.Seek(0, io.SeekStart); err != nil {
		return err
	}
	file, err := p.create(manifestName)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(file, p.copy, p.manifest.bytes); err != nil {
		return fmt.Errorf("packing the manifest: %w", err)
	}
	return p.zip.Close()
}

// path returns the path of a resource in the package. Its number makes it unique on every file system. The end of the
// URI follows, in characters that all of them allow.
func (p *PackageWriter) path(folder, uri string) string {
	return fmt.Sprintf("/%s/%06d-%s", folder, p.files+1, fileName(uri))
}

func fileName(uri string) string {
	const most = 80
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	uri = strings.TrimRight(uri, "/")
	name := []byte(uri[strings.LastIndexAny(uri, "/:")+1:])
	if len(name) > most {
		name = name[len(name)-most:] // with its extension
	}
	for i, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.' && i > 0 && i < len(name)-1:
		default:
			name[i] = '_'
		}
	}
	if len(name) == 0 {
		return "resource"
	}
	return string(name)
}
