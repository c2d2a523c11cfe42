package folder

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/tmshare/tmshare/internal/follow"
)

// journalFile is the name of the file that lists the records fetched since the last save. The state is saved only now
// and then, because that takes time for each record in the folder. The journal gets a line for each fetched record;
// after a kill, the next process that opens the folder reads it.
const journalFile = follow.OwnPrefix + ".journal"

// journalLine is a line of the journal: the first one names the round, each other one a record and its temporary file.
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

// endJournal removes the journal after its records are in the saved state.
func (f *Folder) endJournal() error {
	if f.journal == nil {
		return nil
	}
	err := errors.Join(f.journal.Close(), f.root.Remove(journalFile))
	f.journal = nil
	return err
}

// replay adds the records that a killed process fetched after its last save.
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

// isWhole reports whether a temporary file has the fetched content.
func (f *Folder) isWhole(temp string, held *Held) bool {
	if info, err := f.root.Lstat(temp); err != nil || info.Size() != held.Length || !info.Mode().IsRegular() {
		return false
	}
	sum, err := f.digest(temp, follow.Fixity{})
	return err == nil && sum == held.SHA256
}
