package mapfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/tmdm"
)

// folder opens the documents that mergeMap names: files below root only, and
// whatever symbolic links say (os.Root sees to that).
type folder struct {
	root *os.Root
	dir  string // of root, absolute
	doc  string // the folder of the document, absolute
	base string // of the document
	in   *input
}

// openFolder opens the folder root, or the one of the document where root is "".
func openFolder(root, doc string, base tmdm.Locator, in *input) (*folder, error) {
	doc, err := filepath.Abs(doc)
	if err != nil {
		return nil, fmt.Errorf("mapfile: %w", err)
	}
	if root == "" {
		root = doc
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("mapfile: %w", err)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("mapfile: the folder for mergeMap: %w", err)
	}
	return &folder{root: r, dir: dir, doc: doc, base: string(base), in: in}, nil
}

// load opens the file that l stands for (it is the Loader of xtm.Options).
func (f *folder) load(l tmdm.Locator) (io.ReadCloser, error) {
	name, err := f.find(string(l))
	if err != nil {
		return nil, err
	}
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, f.explain(err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, errors.New("it is not a regular file")
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, f.explain(err)
	}
	r, err := f.in.unpack(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return readCloser{r, file}, nil
}

// find returns the path below root of the file that l stands for. References
// within the document are relative to its base, whether or not that is its
// place; a file URL may as well be meant as it stands.
func (f *folder) find(l string) (string, error) {
	isFile := false
	if rel, ok := relativeTo(f.base, l); ok {
		isFile = true
		if name, ok := f.below(filepath.Join(f.doc, filepath.FromSlash(rel))); ok {
			return name, nil
		}
	}
	if p, ok := filePath(l); ok {
		isFile = true
		if name, ok := f.below(filepath.FromSlash(p)); ok {
			return name, nil
		}
	}
	if isFile {
		return "", fmt.Errorf("it is not below %s, and no other files are opened", f.dir)
	}
	return "", errors.New("nothing is fetched: only files are opened, by a path or an absolute file URL")
}

// below returns the path of an absolute path relative to root.
func (f *folder) below(p string) (string, bool) {
	rel, err := filepath.Rel(f.dir, p)
	return rel, err == nil && filepath.IsLocal(rel)
}

// explain says where files are opened, unless that one is just not there: a symbolic
// link may lead out of root.
func (f *folder) explain(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w (files are opened below %s only)", err, f.dir)
}

type readCloser struct {
	io.Reader
	io.Closer
}
