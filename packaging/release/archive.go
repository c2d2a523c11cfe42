package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// archive writes the files of a platform into an archive, in the order of their names, with the time of the commit and
// without owners.
func (r *release) archive(t target, files []file) error {
	name := fmt.Sprintf("tmshare-%s-%s", r.version, t)
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	if t.os == "windows" {
		return r.write(name+".zip", func(w io.Writer) error { return r.zip(w, name, files) })
	}
	return r.write(name+".tar.gz", func(w io.Writer) error {
		level := gzip.BestCompression
		if r.unpacked {
			level = gzip.NoCompression
		}
		z, err := gzip.NewWriterLevel(w, level)
		if err != nil {
			return err
		}
		return errors.Join(r.tar(z, name, files), z.Close())
	})
}

// write writes a result.
func (r *release) write(name string, to func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return errors.Join(to(f), f.Close())
}

func (r *release) tar(w io.Writer, folder string, files []file) error {
	a := tar.NewWriter(w)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		head := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Size: int64(len(content)), Mode: f.mode,
			ModTime: r.time, Format: tar.FormatUSTAR}
		if err := a.WriteHeader(head); err != nil {
			return err
		}
		if _, err := a.Write(content); err != nil {
			return err
		}
	}
	return a.Close()
}

func (r *release) zip(w io.Writer, folder string, files []file) error {
	a := zip.NewWriter(w)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		head := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: r.time}
		head.SetMode(os.FileMode(f.mode))
		to, err := a.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
	}
	return a.Close()
}

// container writes the Containerfile beside the archives, which it uses.
func (r *release) container() error {
	steps, err := os.ReadFile(filepath.Join(r.source, "packaging", "Containerfile"))
	if err != nil {
		return err
	}
	return r.write("Containerfile", func(w io.Writer) error {
		_, err := w.Write(steps)
		return err
	})
}

// sums writes SHA256SUMS, as sha256sum -c reads it.
func (r *release) sums() error {
	results, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, result := range results {
		f, err := os.Open(filepath.Join(r.out, result.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", hex.EncodeToString(h.Sum(nil)), result.Name())
	}
	return r.write("SHA256SUMS", func(w io.Writer) error {
		_, err := io.WriteString(w, lines.String())
		return err
	})
}
