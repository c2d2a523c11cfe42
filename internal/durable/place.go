package durable

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrElsewhere is the error if the path of a folder leads to another one now, or to none.
var ErrElsewhere = errors.New("it was moved, removed or replaced while this process has it")

// Place is a folder that this process has opened. It remains the same folder if its path changes.
type Place struct {
	name   string
	inside string
	folder *os.File
	opened os.FileInfo
}

// OpenPlace opens a folder.
func OpenPlace(path string) (*Place, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &Place{name: path, inside: path, folder: f}
	if p.opened, err = f.Stat(); err == nil {
		err = p.CheckPlace()
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("%w: try again", err)
	}
	if by := fmt.Sprintf("/proc/self/fd/%d", f.Fd()); p.is(by) == nil {
		p.inside = by
	}
	return p, nil
}

// Name returns the path by which the folder was opened.
func (p *Place) Name() string { return p.name }

// Inside returns a path that leads to the folder, also when it was moved, where the system has such paths: see
// [Place.Follows].
func (p *Place) Inside() string { return p.inside }

// Follows reports whether Inside leads to the folder wherever it is moved.
func (p *Place) Follows() bool { return p.inside != p.name }

// File returns the opened folder.
func (p *Place) File() *os.File { return p.folder }

// CheckPlace returns an [ErrElsewhere] where the path by which the folder was opened does not lead to it any more.
func (p *Place) CheckPlace() error {
	if err := p.is(p.name); err != nil {
		return fmt.Errorf("the data folder is not the one at %s any more: %w", p.name, err)
	}
	return nil
}

func (p *Place) is(path string) error {
	if there, err := os.Stat(path); err != nil || !os.SameFile(p.opened, there) {
		return ErrElsewhere
	}
	return nil
}

// Close closes the folder.
func (p *Place) Close() { p.folder.Close() }

// Named returns an error in which files in the folder have its name, and not the path of Inside.
func (p *Place) Named(err error) error {
	if err == nil || !p.Follows() || !strings.Contains(err.Error(), p.inside) {
		return err
	}
	return &namedError{err, p}
}

// Text does for a text what Named does for an error.
func (p *Place) Text(s string) string {
	if !p.Follows() {
		return s
	}
	return strings.ReplaceAll(s, p.inside+"/", p.name+"/")
}

type namedError struct {
	error
	place *Place
}

func (e *namedError) Error() string { return e.place.Text(e.error.Error()) }
func (e *namedError) Unwrap() error { return e.error }
