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

// Renderings are gzipped files that are made when somebody asks for them, and can be made again. One is made at a time.
// Each is whole before anybody has it. The files have no names, and are gone when the process ends. They are safe for
// concurrent use.
type Renderings struct {
	folder string
	most   int64         // bytes that are kept, besides the file that was used last
	keep   time.Duration // that a file is kept after its last use
	making Lasting       // in its place is the one that is being made
	end    context.CancelFunc

	mu    sync.Mutex
	files []*rendering // the last used one first
}

// rendering is a file. It is closed by the last one who lets it go, of which the Renderings are one.
type rendering struct {
	name    string
	file    *os.File
	size    int64
	holders int
	forget  *time.Timer
}

// NewRenderings keeps files in a folder: so many bytes, each for some time after its last use. A client waits for the
// turn to make one for the time that is given, and then has to try again: what is being made is told.
func NewRenderings(folder string, most int64, keep, wait time.Duration, what string) *Renderings {
	f := &Renderings{folder: folder, most: most, keep: keep,
		making: Lasting{Places: make(chan struct{}, 1), Wait: wait, What: what}}
	f.making.Until, f.end = context.WithCancel(context.Background())
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

// Open opens the file with a name, which render writes where it is not there. While others are at it, nothing is
// opened, and the handler returns the error: it is called again for its turn. It goes on then when the client has gone:
// others want the file as well.
func (f *Renderings) Open(r *http.Request, name string, render func(io.Writer) error) (opened File, err error) {
	if opened = f.open(name); opened != nil {
		return opened, nil
	}
	err = f.making.Do(r, func() error {
		made, err := f.render(render)
		if err != nil {
			return err
		}
		made.name = name
		opened = f.add(made)
		return nil
	})
	return opened, err
}

// Expects reports whether a file with a name is there, or is to be made for the request.
func (f *Renderings) Expects(r *http.Request, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.making.Has(r) || f.index(name) >= 0
}

func (f *Renderings) render(render func(io.Writer) error) (*rendering, error) {
	file, err := durable.Temporary(f.folder)
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriterSize(file, 64<<10)
	packed := gzip.NewWriter(buffer)
	if err = render(durable.ContextWriter{Context: f.making.Until, Writer: packed}); err == nil {
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

// add keeps a file, and opens it. Those that were not used for the longest time go where there are too many bytes.
func (f *Renderings) add(r *rendering) File {
	f.mu.Lock()
	defer f.mu.Unlock()
	opened := f.hold(r)
	if f.making.Until.Err() != nil {
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
