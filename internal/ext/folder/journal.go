package folder

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/tmshare/tmshare/internal/follow"
)

// journalFile is the name of the file that lists what was fetched since the last save. Saving the state costs time for
// each record in the folder, so it is done now and then. The journal gets a line for each record that is fetched, and
// the next process that opens the folder after a kill reads it.
const journalFile = follow.OwnPrefix + ".journal"

// journalLine is a line of the journal: the first one says which round it belongs to, the
// others which record is in which temporary file.
type journalLine struct {
	Mark    *follow.Mark `json:"mark,omitempty"`
	Formats []string     `json:"formats,omitempty"`

	ID   string `json:"id,omitempty"`
	Temp string `json:"temp,omitempty"`
	Held *Held  `json:"held,omitempty"`
}

// enter enters a record that was fetched into the journal. Nothing is synced: a line counts
// only if its file is whole.
func (f *Folder) enter(id string, held *Held, temp string) error {
	if f.journal == nil {
		var err error
		if f.journal, err = f.root.Create(journalFile); err != nil {
			return err
		}
		if err := f.journalLine(journalLine{Mark: &f.state.Mark, Formats: f.state.Formats}); err != nil {
			return err
		}
	}
	return f.journalLine(journalLine{ID: id, Temp: temp, Held: held})
}

func (f *Folder) journalLine(line journalLine) error {
	b, err := marshal(line)
	if err == nil {
		_, err = f.journal.Write(append(b, '\n'))
	}
	return err
}

// endJournal removes the journal, once the state says what was in it.
func (f *Folder) endJournal() error {
	if f.journal == nil {
		return nil
	}
	err := errors.Join(f.journal.Close(), f.root.Remove(journalFile))
	f.journal = nil
	return err
}

// replay keeps what was fetched after the last save of a process that was killed.
func (f *Folder) replay() error {
	file, err := f.root.Open(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	var round journalLine
	kept := false
	lines := json.NewDecoder(bufio.NewReader(file))
	for {
		var line journalLine
		if lines.Decode(&line) != nil { // the end, maybe in the middle of a line
			break
		}
		switch {
		case round.Mark == nil:
			if round = line; round.Mark == nil || !slices.Equal(round.Formats, f.state.Formats) { // of a round for other formats
				return f.root.Remove(journalFile)
			}
			continue
		case line.Held == nil || !f.isWhole(line.Temp, line.Held):
			continue
		}
		line.Held.File = ""
		if err := f.place(line.ID, line.Held, line.Temp); err != nil {
			return err
		}
		f.state.Mark, kept = *round.Mark, true
	}
	if kept {
		if err := f.saveAll(); err != nil {
			return err
		}
	}
	return f.root.Remove(journalFile)
}

// isWhole reports whether a temporary file is what was fetched.
func (f *Folder) isWhole(temp string, held *Held) bool {
	if info, err := f.root.Lstat(temp); err != nil || info.Size() != held.Length || !info.Mode().IsRegular() {
		return false
	}
	sum, err := f.digest(temp, follow.Fixity{})
	return err == nil && sum == held.SHA256
}
