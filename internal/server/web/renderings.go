package web

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/internal/durable"
)

// Renderings are gzipped files that are made on request, one at a time, and can be made again. Each is complete before
// it can be read. The files have no names, and are removed when the process ends. They are safe for concurrent use.
type Renderings struct {
	folder string
	most   int64         // bytes that are kept, besides the file that was used last
	keep   time.Duration // that a file is kept after its last use
	making turn          // to make one, which goes on when the client has gone
	end    context.CancelFunc

	mu    sync.Mutex
	files []*rendering // the last used one first
}

// rendering is a file. Its last user closes it; the Renderings are one of them.
type rendering struct {
	name    string
	file    *os.File
	size    int64
	holders int
	forget  *time.Timer
}

// NewRenderings keeps files in a folder: up to a number of bytes, each for some time after its last use. A client waits
// for its turn for the given time, and then must retry; the answer names the document.
func NewRenderings(folder string, most int64, keep, wait time.Duration, what string) *Renderings {
	f := &Renderings{folder: folder, most: most, keep: keep,
		making: turn{places: make(chan struct{}, 1), wait: wait, what: what}}
	f.making.outlast, f.end = context.WithCancel(context.Background())
	return f
}

// Close gives all files up. What is being made ends with an error.
func (f *Renderings) Close() {
	f.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.files) > 0 {
		f.drop(f.files[0])
	}
}

// Open opens the file with a name, which render writes if it is missing. If another one is being made, it opens
// nothing, and the handler must return the error: it is called again in its turn. Then it continues even after the
// client has gone, because others need the file, too.
func (f *Renderings) Open(r *http.Request, name string, render func(io.Writer) error) (opened File, err error) {
	if opened = f.open(name); opened != nil {
		return opened, nil
	}
	if !f.makes(r) {
		return nil, &f.making
	}
	made, err := f.render(render)
	if err != nil {
		return nil, err
	}
	made.name = name
	return f.add(made), nil
}

// makes reports whether a request has its turn to make a file.
func (f *Renderings) makes(r *http.Request) bool { return RecorderOf(r).place == f.making.places }

// Expects reports whether a file with a name exists, or is to be made for the request.
func (f *Renderings) Expects(r *http.Request, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.makes(r) || f.index(name) >= 0
}

func (f *Renderings) render(render func(io.Writer) error) (*rendering, error) {
	file, err := durable.Temporary(f.folder)
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriterSize(file, 64<<10)
	packed := gzip.NewWriter(buffer)
	if err = render(durable.ContextWriter{Context: f.making.outlast, Writer: packed}); err == nil {
		err = packed.Close()
	}
	if err == nil {
		err = buffer.Flush()
	}
	made := &rendering{file: file}
	if err == nil {
		made.size, err = file.Seek(0, io.SeekCurrent)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return made, nil
}

// open returns the file with a name, nil if it is not there.
func (f *Renderings) open(name string) File {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.index(name)
	if at < 0 {
		return nil
	}
	r := f.files[at]
	f.files = slices.Insert(slices.Delete(f.files, at, at+1), 0, r)
	r.forget.Reset(f.keep)
	return f.hold(r)
}

func (f *Renderings) index(name string) int {
	return slices.IndexFunc(f.files, func(r *rendering) bool { return r.name == name })
}

// add keeps a file, and opens it. Above the limit of bytes it removes the least recently used ones.
func (f *Renderings) add(r *rendering) File {
	f.mu.Lock()
	defer f.mu.Unlock()
	opened := f.hold(r)
	if f.making.outlast.Err() != nil {
		return opened
	}
	r.holders++
	r.forget = time.AfterFunc(f.keep, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(r)
	})
	f.files = slices.Insert(f.files, 0, r)
	left := f.most
	for i, kept := range f.files {
		if left -= kept.size; left < 0 && i > 0 {
			for _, old := range slices.Clone(f.files[i:]) {
				f.drop(old)
			}
			break
		}
	}
	return opened
}

// drop lets a file go that is kept.
func (f *Renderings) drop(r *rendering) {
	if at := slices.Index(f.files, r); at >= 0 {
		f.files = slices.Delete(f.files, at, at+1)
		r.forget.Stop()
		r.release()
	}
}

func (f *Renderings) hold(r *rendering) File {
	r.holders++
	return &openRendering{io.NewSectionReader(r.file, 0, r.size), sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		r.release()
	})}
}

func (r *rendering) release() {
	if r.holders--; r.holders == 0 {
		r.file.Close()
	}
}

// openRendering implements [File].
type openRendering struct {
	*io.SectionReader
	release func()
}

func (o *openRendering) Close() error {
	o.release()
	return nil
}
