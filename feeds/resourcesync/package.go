package resourcesync

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync/atomic"

	"github.com/tmshare/tmshare/internal/xml/read"
)

// PackageLimits bound the cost of reading a remote package. A zero field means the default.
type PackageLimits struct {
	MaxEntries   int   // files and folders; default 100,000
	MaxDirectory int64 // bytes of the list of files at the end; default 32 MiB
	MaxUnpacked  int64 // bytes of all reads together, unpacked; default 16 GiB
	MaxResource  int64 // bytes of one file, unpacked; default 1 GiB
	MaxRatio     int64 // of the unpacked to the packed length, for files of more than 1 MiB; default 200
	Manifest     Limits
}

func (l PackageLimits) withDefaults() PackageLimits {
	read.Or(&l.MaxEntries, 2*MaxItems)
	read.Or(&l.MaxDirectory, 32<<20)
	read.Or(&l.MaxUnpacked, 16<<30)
	read.Or(&l.MaxResource, 1<<30)
	read.Or(&l.MaxRatio, 200)
	return l
}

// smallFile is the length in bytes up to which any ratio is allowed.
const smallFile = 1 << 20

// Package reads a ZIP package of a dump. It is safe for concurrent use.
type Package struct {
	uri      string
	limits   PackageLimits
	files    map[string]*zip.File // by their clean names
	manifest string               // the name of the manifest
	unpacked atomic.Int64
}

// OpenPackage opens the package in r, which has size bytes; uri is its address. It checks the names and lengths of all
// files before it unpacks any. It refuses hostile packages: names that lead out of the package or occur twice, symbolic
// links, devices, and bombs. The error then is a *[PackageError] or a *[LimitError]. Errors of r are wrapped.
//
// Files that the manifest does not mention are ignored.
func OpenPackage(r io.ReaderAt, size int64, uri string, limits PackageLimits) (*Package, error) {
	p := &Package{uri: uri, limits: limits.withDefaults(), files: make(map[string]*zip.File)}
	directory := &metered{r: r, left: p.limits.MaxDirectory + endOfDirectory}
	z, err := zip.NewReader(directory, size)
	switch {
	case directory.exceeded:
		return nil, p.limitError("", "MaxDirectory", p.limits.MaxDirectory)
	case directory.err != nil:
		return nil, fmt.Errorf("reading %s: %w", uri, directory.err)
	case err != nil && err != zip.ErrInsecurePath: // names are checked below
		return nil, &PackageError{URI: uri, Reason: "is no ZIP file", Err: err}
	case len(z.File) > p.limits.MaxEntries:
		return nil, p.limitError("", "MaxEntries", int64(p.limits.MaxEntries))
	}
	directory.left = 0 // from here on, the lengths of files are limited instead
	var unpacked uint64
	for _, f := range z.File {
		if err := p.check(f); err != nil {
			return nil, err
		}
		if unpacked += f.UncompressedSize64; unpacked > uint64(p.limits.MaxUnpacked) {
			return nil, p.limitError("", "MaxUnpacked", p.limits.MaxUnpacked)
		}
	}
	if p.manifest == "" {
		return nil, &PackageError{URI: uri, Reason: "has no " + manifestName}
	}
	return p, nil
}

// check checks the name, kind and length of a file, and enters it in p.files.
func (p *Package) check(f *zip.File) error {
	refuse := func(reason string) error { return &PackageError{URI: p.uri, Entry: f.Name, Reason: reason} }
	if reason := unsafeName(f.Name); reason != "" {
		return refuse(reason)
	}
	name := path.Clean(f.Name)
	if _, ok := p.files[name]; ok {
		return refuse("occurs twice")
	}
	switch mode := f.Mode(); {
	case mode.IsDir():
		p.files[name] = nil
		return nil
	case !mode.IsRegular():
		return refuse("is not a file but " + mode.Type().String())
	}
	switch {
	case f.UncompressedSize64 > uint64(p.limits.MaxResource):
		return p.limitError(f.Name, "MaxResource", p.limits.MaxResource)
	case f.UncompressedSize64 > smallFile && f.UncompressedSize64/uint64(p.limits.MaxRatio) >= max(f.CompressedSize64, 1):
		return p.limitError(f.Name, "MaxRatio", p.limits.MaxRatio)
	}
	p.files[name] = f
	// Some Sources pack the folder with all files: the manifest with the shortest path counts.
	if path.Base(name) == manifestName && (p.manifest == "" || strings.Count(name, "/") < strings.Count(p.manifest, "/")) {
		p.manifest = name
	}
	return nil
}

// unsafeName returns the reason to refuse a name in a package, or a path in a manifest without its first slash; "" if
// none.
func unsafeName(name string) string {
	switch {
	case name == "":
		return "has no name"
	case strings.HasPrefix(name, "/"):
		return "is an absolute path"
	case strings.Contains(name, `\`):
		return "has a backslash in its name"
	case len(name) > 1 && name[1] == ':':
		return "begins with the letter of a drive"
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7F {
			return "has a control character in its name"
		}
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == ".." {
			return "leads out of its folder"
		}
	}
	return ""
}

// Manifest begins to read the manifest. Relative URIs in it are resolved against that of the package. Errors are those
// of [Read], and a *[PackageError] where the document is no manifest.
func (p *Package) Manifest() (*Reader, error) {
	content, err := p.open(p.manifest)
	if err != nil {
		return nil, err
	}
	d, err := Read(content, p.uri, p.limits.Manifest)
	if err != nil {
		return nil, err
	}
	if d.Document.Index || !kinds[d.Document.Capability].manifest {
		return nil, &PackageError{URI: p.uri, Entry: p.manifest,
			Reason: fmt.Sprintf("is no manifest: its capability is %q", read.Clip(string(d.Document.Capability)))}
	}
	return d, nil
}

// Open returns the bitstream of the resource uri, for which the manifest states r: it opens its Path, and verifies the
// content as [Representation.Verify] does. The error is a *[PackageError] where the package has no such file. The
// caller closes the reader.
func (p *Package) Open(uri string, r Representation) (io.ReadCloser, error) {
	if r.Path == "" {
		return nil, &PackageError{URI: p.uri, Reason: "the manifest has no path for " + read.Clip(uri)}
	}
	name := strings.TrimPrefix(r.Path, "/")
	if reason := unsafeName(name); reason != "" {
		return nil, &PackageError{URI: p.uri, Entry: r.Path, Reason: reason}
	}
	// A path begins at the root of the package or, if the manifest is in a folder, may begin at that.
	name = path.Clean(name)
	if inFolder := path.Join(path.Dir(p.manifest), name); p.files[name] == nil && p.files[inFolder] != nil {
		name = inFolder
	}
	content, err := p.open(name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{r.Verify(uri, content), content}, nil
}

func (p *Package) open(name string) (io.ReadCloser, error) {
	f := p.files[name]
	if f == nil {
		return nil, &PackageError{URI: p.uri, Entry: name, Reason: "is not in the package"}
	}
	if f.Flags&1 != 0 {
		return nil, &PackageError{URI: p.uri, Entry: name, Reason: "is encrypted"}
	}
	content, err := f.Open()
	if err != nil {
		return nil, &PackageError{URI: p.uri, Entry: name, Reason: "cannot be unpacked", Err: err}
	}
	return &unpacking{p: p, name: name, content: content}, nil
}

// unpacking counts the unpacked bytes of all reads, as one file may be read many times. archive/zip makes sure that no
// file is longer than the directory states.
type unpacking struct {
	p       *Package
	name    string
	content io.ReadCloser
}

func (u *unpacking) Read(b []byte) (int, error) {
	n, err := u.content.Read(b)
	if u.p.unpacked.Add(int64(n)) > u.p.limits.MaxUnpacked {
		return 0, u.p.limitError("", "MaxUnpacked", u.p.limits.MaxUnpacked)
	}
	if err != nil && err != io.EOF {
		return n, &PackageError{URI: u.p.uri, Entry: u.name, Reason: "cannot be unpacked", Err: err}
	}
	return n, err
}

func (u *unpacking) Close() error { return u.content.Close() }

func (p *Package) limitError(entry, limit string, most int64) error {
	return &LimitError{URI: p.uri, Entry: entry, Limit: limit, Max: most}
}

// endOfDirectory bounds the bytes that are read beside the directory: by the search for its end, and ahead.
const endOfDirectory = 128 << 10

// metered stops after a number of bytes: a directory may be longer than the record at its end states.
type metered struct {
	r        io.ReaderAt
	left     int64 // 0: no limit, and no errors are kept
	exceeded bool
	err      error // of r
}

var errMetered = errors.New("the directory is too long")

func (m *metered) ReadAt(b []byte, at int64) (int, error) {
	if m.left == 0 {
		return m.r.ReadAt(b, at)
	}
	if m.left -= int64(len(b)); m.left <= 0 {
		m.left, m.exceeded = 1, true
		return 0, errMetered
	}
	n, err := m.r.ReadAt(b, at)
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}
