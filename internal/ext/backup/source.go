package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// source is a backup that is there.
type source interface {
	read(c chunk) ([]byte, error) // checked against its name
	Close() error
}

// open opens the backup at a path: a file, the newest one of a folder, or the one that a
// manifest in a folder is of.
func open(path string) (source, *Manifest, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("no backup: %w; name the file or the folder that \"backup\" wrote", err)
	case info.IsDir():
		all, err := manifests(path)
		if err != nil {
			return nil, nil, err
		}
		if len(all) == 0 {
			return nil, nil, fmt.Errorf("there is no complete backup in %s: name the file or the folder that \"backup\" wrote",
				path)
		}
		return openFolder(path, all[len(all)-1])
	case manifestName.MatchString(filepath.Base(path)):
		return openFolder(filepath.Dir(path), filepath.Base(path))
	}
	return openFile(path)
}

// manifests returns the names of the manifests in a folder, the oldest first.
func manifests(path string) (names []string, err error) {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if manifestName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

type folderSource struct{ path string }

func openFolder(path, name string) (source, *Manifest, error) {
	content, err := os.ReadFile(filepath.Join(path, name))
	if err != nil {
		return nil, nil, err
	}
	m, err := decode(name, content)
	return folderSource{path}, m, err
}

func (s folderSource) read(c chunk) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(s.path, chunkPath(c.SHA256)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, damaged(s.path, "the chunk "+c.SHA256+" is missing")
	}
	if err != nil {
		return nil, err
	}
	return b, c.check(s.path, b)
}

func (s folderSource) Close() error { return nil }

func (c chunk) check(where string, b []byte) error {
	if int64(len(b)) != c.Size || sum(b) != c.SHA256 {
		return damaged(where, "the chunk "+c.SHA256+" has other bytes")
	}
	return nil
}

type fileSource struct {
	*os.File
	at map[string]*io.SectionReader // of chunks
}

func openFile(path string) (_ source, m *Manifest, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	s := &fileSource{f, map[string]*io.SectionReader{}}
	counted, end := &position{r: f}, int64(0)
	for archive := tar.NewReader(counted); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, damaged(path, "it is cut off, or no backup ("+err.Error()+")")
		}
		end = counted.at + (h.Size+511)/512*512 + 1024 // followed by two blocks of zeros
		switch folder, name := filepath.Split(h.Name); {
		case folder == chunkFolder+"/" && chunkName.MatchString(name):
			s.at[name] = io.NewSectionReader(f, counted.at, h.Size)
		case folder == "" && manifestName.MatchString(name) && h.Size <= maxPacked:
			content, err := io.ReadAll(archive)
			if err != nil {
				return nil, nil, damaged(path, err.Error())
			}
			if m, err = decode(name, content); err != nil {
				return nil, nil, err
			}
		default:
			return nil, nil, damaged(path, fmt.Sprintf("it has a part %.80q, which no backup has", h.Name))
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if m == nil || info.Size() != end {
		return nil, nil, damaged(path, "it is cut off, or no backup")
	}
	return s, m, nil
}

// position counts the bytes read.
type position struct {
	r  *os.File
	at int64
}

func (p *position) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.at += int64(n)
	return n, err
}

func (p *position) Seek(offset int64, whence int) (int64, error) {
	at, err := p.r.Seek(offset, whence)
	if err == nil {
		p.at = at
	}
	return at, err
}

func (s *fileSource) read(c chunk) ([]byte, error) {
	section := s.at[c.SHA256]
	if section == nil || section.Size() != c.Size {
		return nil, damaged(s.Name(), "the chunk "+c.SHA256+" is missing")
	}
	b := make([]byte, c.Size)
	if _, err := section.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return b, c.check(s.Name(), b)
}

// verify reads all chunks.
func verify(ctx context.Context, s source, m *Manifest, progress func(Progress)) error {
	total, done := m.size(), int64(0)
	for _, c := range m.all() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := s.read(c); err != nil {
			return err
		}
		done += c.Size
		progress(Progress{"checking the backup", done, total})
	}
	return nil
}
