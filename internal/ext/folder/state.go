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

// StateFile is the name of the file with the state of a folder: one JSON document, a [State]. All other auxiliary files
// in a folder have the same prefix.
const StateFile = follow.OwnPrefix + ".json"

// State is the state of a folder; programs may read it.
type State struct {
	Version int         `json:"version"` // of this description: 1
	URL     string      `json:"url"`     // of the feed, or where the Source was found
	Mirror  bool        `json:"mirror,omitempty"`
	Formats []string    `json:"formats"` // the media types that are wanted, the best first; none: all
	Mark    follow.Mark `json:"mark"`    // how far the feed has been followed

	// Memory holds what earlier readings of the feed must pass on, and Span the entries that were read last.
	Memory *follow.Memory `json:"memory,omitempty"`
	Span   []byte         `json:"span,omitempty"`

	// Unfinished maps files to their new names, or to "" if they are to be removed. It is empty except during a round,
	// or after a round was killed.
	Unfinished map[string]string `json:"unfinished,omitempty"`

	Records map[string]*Held `json:"records"` // by id
}

// Held is the state of a record.
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
	// Stale requests another look: the wanted formats have changed, or the version was not the expected one.
	Stale bool `json:"stale,omitempty"`

	Missing *Missing `json:"missing,omitempty"` // a version that could not be had, and is tried for again
}

// Missing is a version of a record that could not be fetched.
type Missing struct {
	Updated         time.Time               `json:"updated"`
	Gone            bool                    `json:"gone,omitempty"` // nothing is at its addresses; else it may be there
	Reason          string                  `json:"reason"`
	Since           time.Time               `json:"since"` // by the clock of this machine
	Tried           time.Time               `json:"tried"`
	Unsure          bool                    `json:"unsure,omitempty"`
	Representations []follow.Representation `json:"representations"`
}

// readState reads the state of a folder; the empty state if there is none.
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

// save makes all completed work durable: it syncs the fetched content under temporary names, then writes the state with
// the new names, then renames the files. After an interruption, the next Open completes the renaming.
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
	f.state.Unfinished = nil // the next save writes this; the sync made the names durable
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

// finish renames files and removes those to be removed.
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

// noteRenamed notes the folders whose entries changed with a file, so that the next save syncs them.
func (f *Folder) noteRenamed(name string) {
	for _, dir := range above(name) {
		if f.renamed == nil {
			f.renamed = map[string]bool{}
		}
		f.renamed[dir] = true
	}
}

// isMissing reports whether a file is missing, also because part of its path is no folder.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// sync makes written files durable.
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
