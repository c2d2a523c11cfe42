package formats

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// folder opens the documents that mergeMap names: files below root only, also with symbolic links (os.Root ensures
// that).
type folder struct {
	root *os.Root
	dir  string // of root, absolute
	doc  string // the folder of the document, absolute
	base string // of the document
	in   *input

	looked func(path string, info fs.FileInfo)
	opened map[string]string // by locator: the files
}

// loadError is the reason why a document that mergeMap names is not merged, with the remedy.
type loadError struct{ err error }

func (e *loadError) Error() string { return "<mergeMap>: " + e.err.Error() }
func (e *loadError) Unwrap() error { return e.err }

// openFolder opens the folder root, or the one of the document where root is "".
func openFolder(root, doc string, base tmdm.Locator, in *input, looked func(string, fs.FileInfo)) (*folder, error) {
	doc, err := filepath.Abs(doc)
	if err != nil {
		return nil, err
	}
	if root == "" {
		root = doc
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s, the folder for <mergeMap>: %w; --root names another one", dir, causeOf(err))
	}
	return &folder{root: r, dir: dir, doc: doc, base: string(base), in: in, looked: looked,
		opened: map[string]string{}}, nil
}

// load opens the file of the locator l (it is the Loader of xtm.Options).
func (f *folder) load(l tmdm.Locator) (io.ReadCloser, error) {
	r, err := f.open(string(l))
	if err != nil {
		return nil, &loadError{err}
	}
	return r, nil
}

func (f *folder) open(l string) (io.ReadCloser, error) {
	name, err := f.find(l)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(f.dir, name)
	f.opened[l] = path
	info, err := f.root.Stat(name)
	f.looked(path, info)
	if err != nil {
		return nil, f.explain(path, err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, fmt.Errorf("%s is not a regular file; only such are merged in", path)
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, f.explain(path, err)
	}
	r, err := f.in.unpack(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return ReadCloser{r, file}, nil
}

// rename replaces the locators in an error by the names of files.
func (f *folder) rename(e *xtm.SyntaxError) {
	if path, ok := f.opened[e.URI]; ok {
		e.URI = path
	}
	if failed, ok := e.Err.(*loadError); ok {
		e.Reason = failed.Error()
	}
}

// renaming returns f with the names of files.
func (f *folder) renaming(tell func(*xtm.SyntaxError)) func(*xtm.SyntaxError) {
	if tell == nil {
		return nil
	}
	return func(e *xtm.SyntaxError) {
		f.rename(e)
		tell(e)
	}
}

// find returns the path below root of the file of the locator l. References within the document are relative to its
// base, even if that is not its place; a file URL may also be meant literally.
func (f *folder) find(l string) (string, error) {
	outside := ""
	if rel, ok := relativeTo(f.base, l); ok {
		outside = filepath.Join(f.doc, filepath.FromSlash(rel))
		if name, ok := f.below(outside); ok {
			return name, nil
		}
	}
	if p, ok := filePath(l); ok {
		outside = filepath.FromSlash(p)
		if name, ok := f.below(outside); ok {
			return name, nil
		}
	}
	if outside != "" {
		return "", fmt.Errorf("%s: it is not below %s, and no other files are opened; --root names another folder",
			outside, f.dir)
	}
	return "", fmt.Errorf(
		"%s is not fetched: only files are opened, by a path or an absolute file URL; fetch it yourself, and name "+
			"the file", l)
}

// below returns the path of an absolute path relative to root.
func (f *folder) below(p string) (string, bool) {
	rel, err := filepath.Rel(f.dir, p)
	return rel, err == nil && filepath.IsLocal(rel)
}

// explain adds to an error where files may be opened, unless the file is just missing: a symbolic link may lead out of
// root.
func (f *folder) explain(path string, err error) error {
	err = causeOf(err)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w; put the file there, or remove the <mergeMap>", path, err)
	}
	return fmt.Errorf("%s: %w (files are opened below %s only; --root names another folder)", path, err, f.dir)
}

// ReadCloser reads from a derived reader, and closes its source.
type ReadCloser struct {
	io.Reader
	io.Closer
}
