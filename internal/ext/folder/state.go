package folder

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tmshare/tmshare/internal/follow"
)

// StateFile is the name of the file in a folder that says what the folder holds: one JSON
// document, a [State]. Everything of ours in a folder that is no record begins so.
const StateFile = follow.OwnPrefix + ".json"

// State is what is known of a folder, for programs too.
type State struct {
	Version int         `json:"version"` // of this description: 1
	URL     string      `json:"url"`     // of the feed, or where the Source was found
	Mirror  bool        `json:"mirror,omitempty"`
	Formats []string    `json:"formats"` // the media types that are wanted, the best first; none: all
	Mark    follow.Mark `json:"mark"`    // how far the feed has been followed

	// Memory is what is remembered of earlier readings of the feed, Span which of its entries were read last.
	Memory *follow.Memory `json:"memory,omitempty"`
	Span   []byte         `json:"span,omitempty"`

	// Unfinished files are yet to be renamed, from what to what, or removed, where it
	// is to "": there are some only while a round is under way, or where it was killed.
	Unfinished map[string]string `json:"unfinished,omitempty"`

	Records map[string]*Held `json:"records"` // by id
}

// Held is what is known of a record.
type Held struct {
	File    string    `json:"file,omitempty"` // its name, in the folder; none where the record is not held
	Title   string    `json:"title,omitempty"`
	Updated time.Time `json:"updated,omitzero"` // last modified time, by the source's clock
	URL     string    `json:"url,omitempty"`
	Type    string    `json:"type,omitempty"` // media type
	ETag    string    `json:"etag,omitempty"`
	Length  int64     `json:"length,omitempty"` // bytes
	SHA256  string    `json:"sha256,omitempty"` // of the file, in hexadecimal
	Stated  []string  `json:"stated,omitempty"` // digests that the source has stated and the file has: "md5:…"

	Unwanted bool `json:"unwanted,omitempty"` // it is in none of the formats that are wanted
	// to be looked at anew: other formats are wanted than before, or the version is not the one that it seemed to be
	Stale bool `json:"stale,omitempty"`

	Missing *Missing `json:"missing,omitempty"` // a version that could not be had, and is tried for again
}

// Missing is a version of a record that could not be had.
type Missing struct {
	Updated         time.Time               `json:"updated"`
	Gone            bool                    `json:"gone,omitempty"` // nothing is at its addresses; else it may be there
	Reason          string                  `json:"reason"`
	Since           time.Time               `json:"since"` // by the clock of this machine
	Tried           time.Time               `json:"tried"`
	Unsure          bool                    `json:"unsure,omitempty"`
	Representations []follow.Representation `json:"representations"`
}

// readState reads the state of a folder, that of an empty one where there is none.
func readState(root *os.Root) (*State, error) {
	s := &State{Version: 1}
	b, err := root.ReadFile(StateFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(b, s); err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", filepath.Join(root.Name(), StateFile), err)
		}
		if s.Version != 1 {
			return nil, fmt.Errorf("%s has version %d, which this program does not know", filepath.Join(root.Name(), StateFile),
				s.Version)
		}
	}
	if s.Records == nil {
		s.Records = map[string]*Held{}
	}
	if s.Memory == nil {
		s.Memory = &follow.Memory{}
	}
	if s.Span != nil {
		s.Memory.Span = &follow.Span{}
		if err := s.Memory.Span.UnmarshalBinary(s.Span); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(root.Name(), StateFile), err)
		}
	}
	return s, nil
}

// write writes the state, a record on each line.
func (s *State) write(w io.Writer) error {
	head := *s
	head.Records = nil
	if m := head.Memory; m != nil && m.Span != nil {
		var err error
		if head.Span, err = m.Span.MarshalBinary(); err != nil {
			return err
		}
	}
	b, err := marshal(head)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 256<<10)
	out.Write(b[:len(b)-len("null}")]) // "records" is its last member
	out.WriteByte('{')
	for i, id := range slices.Sorted(maps.Keys(s.Records)) {
		key, err := marshal(id)
		if err != nil {
			return err
		}
		value, err := marshal(s.Records[id])
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "\n%s: %s", key, value)
	}
	out.WriteString("\n}}\n")
	return out.Flush()
}

func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// save makes all that was done until now last, whatever happens then: first what was
// fetched is on the disk, under temporary names, then the state that says which names
// these get, then they get them. Who opens the folder after an interruption does the rest.
func (f *Folder) save() error {
	if err := f.sync(); err != nil {
		return err
	}
	if err := f.writeState(); err != nil {
		return err
	}
	if err := f.endJournal(); err != nil {
		return err
	}
	if len(f.state.Unfinished) == 0 {
		return nil
	}
	if err := f.finish(); err != nil {
		return err
	}
	f.state.Unfinished = nil // says the next save, whose sync has made this last
	return nil
}

func (f *Folder) writeState() error {
	file, err := f.root.Create(StateFile + ".new")
	if err != nil {
		return err
	}
	err = f.state.write(file)
	if err == nil && f.durable {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.root.Rename(StateFile+".new", StateFile)
	}
	if err == nil && f.durable {
		err = syncNames(f.dir)
	}
	return err
}

// finish gives files their names, and removes those that are to go.
func (f *Folder) finish() error {
	for name, temp := range f.state.Unfinished { // first: a folder may take the place of a file
		if temp != "" {
			continue
		}
		if info, err := f.root.Lstat(name); err == nil && info.IsDir() {
			continue // it has
		}
		if err := f.root.Remove(name); err != nil && !isMissing(err) {
			return err
		}
		f.prune(path.Dir(name))
		f.noteRenamed(name)
	}
	for name, temp := range f.state.Unfinished {
		if temp == "" {
			continue
		}
		err := f.root.Rename(temp, name)
		if dir := path.Dir(name); errors.Is(err, fs.ErrNotExist) && dir != "." {
			if err = f.root.MkdirAll(dir, 0o777); err == nil {
				err = f.root.Rename(temp, name)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is done
			return err
		}
		f.noteRenamed(name)
	}
	return nil
}

// noteRenamed notes the folders that have changed with a file, whose names are to reach the
// disk with the next save.
func (f *Folder) noteRenamed(name string) {
	for _, dir := range above(name) {
		if f.renamed == nil {
			f.renamed = map[string]bool{}
		}
		f.renamed[dir] = true
	}
}

// isMissing reports whether there is no such file, nor can be: a folder on its way is none.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// sync makes what was written to the folder last.
func (f *Folder) sync() error {
	if !f.durable {
		return nil
	}
	var temps []string
	for _, temp := range f.state.Unfinished {
		if temp != "" {
			temps = append(temps, temp)
		}
	}
	err := syncFiles(f.root, f.dir, temps, slices.Collect(maps.Keys(f.renamed)))
	if err == nil {
		f.renamed = nil
	}
	return err
}
