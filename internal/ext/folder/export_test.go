package folder

import "time"

// Functions and values for tests.
const (
	JournalFile            = journalFile
	MaxConsecutiveFailures = maxConsecutiveFailures
)

// JournalLine is a line of the journal.
type JournalLine = journalLine

// Names of files, and the reader of the state.
var (
	Is        = is
	Now       = now
	ReadState = readState
	TreePath  = treePath
)

// Name returns the name of the file of a record with the title of those in tests.
func Name(id, mediaType string, n int) string { return name(id, "T", mediaType, n) }

// NameWith returns the name of the file of a record with any title.
var NameWith = name

// Holding returns a folder that holds something, without files.
func Holding(s *State) *Folder { return &Folder{reading: &reading{state: s}} }

// LoseAtFailure has nothing last when the machine fails, which it does not.
func (f *Folder) LoseAtFailure() { f.durable = false }

// SaveEvery sets the least time between two saves in a round.
func (f *Folder) SaveEvery(d time.Duration) { f.every = d }

// SetClock sets what tells the time.
func (f *Folder) SetClock(now func() time.Time) { f.now = now }

// Take has a name taken by a record.
func (f *Folder) Take(name, id string) { f.occupy(name, id) }

// Put gives a temporary file its name.
func (f *Folder) Put(id string, h *Held, temp string) error { return f.put(id, h, temp) }
