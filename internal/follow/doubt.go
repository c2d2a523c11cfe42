package follow

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
)

// A reading would remove data if its source no longer shows handled entries, or shows an earlier state. Caches, load
// balancers and restored servers cause such readings of sources that have lost nothing. So no single reading is
// believed: it opens a [Doubt], which later readings end or confirm. The rule is the same for all sources and all
// sinks.

// Loss is the reason why a reading does not continue the held state.
type Loss string

// The losses.
const (
	LossNone     Loss = ""
	LossFeed     Loss = "another feed"   // the feed or the set has another id
	LossEmpty    Loss = "empty"          // the feed has no entries any more
	LossOlder    Loss = "older"          // its newest entry is older than what was handled
	LossDiverged Loss = "other entries"  // entries that were handled are not in it any more
	LossShort    Loss = "no way back"    // it does not reach back to what was handled
	LossStale    Loss = "made before"    // it has news, but was made before a reading that was accepted
	LossRecords  Loss = "records absent" // it lacks records that are held, or has older versions of them
	LossMany     Loss = "many losses"    // what is confirmed is more than may be lost without a word
	LossDigest   Loss = "digest"         // its content does not have the digest that it states
)

// Reading is the history of a source as all documents of one look show it.
type Reading struct {
	Loss     Loss   // LossNone: it continues the held state
	Why      string // the loss, for people
	Same     bool   // the documents are those of the reading before, by their ETag
	News     bool   // it has an entry that was not handled
	Feed     string
	Language string // of titles, as stated by the source; "": none stated, or the reading is the Same
	Head     string // key of the newest entry; "": no entry
	HeadAt   time.Time
	Openings []string      // of the source's database, newest first; none: the source proves nothing
	Checked  time.Time     // the time of the data; zero if not stated
	Made     time.Time     // when the origin made the oldest of the documents, at the earliest; zero: unknown
	Date     time.Time     // of the answer, zero: unknown
	Age      time.Duration // of the data, as the answer states it
	Replica  bool          // a replica, which may be behind its origin
	Silent   bool          // it has no statement that could be confirmed
	Asked    bool          // every answer repeats the random value of its request: none comes from a cache
	ToEnd    bool          // it was read to its end
	Mixed    bool          // a document was made before the last reading that was accepted
	ETag     string        // of the document to begin with

	// Every is the source's stated time between changes; zero: not stated.
	Every time.Duration

	// Span has the entries that were read, of sources that prove nothing; nil: keep the remembered ones.
	Span *Span

	Holds func(key string) bool // reports whether an entry was read; nil: the head alone is known
}

// Note notes when the first document was made, and by which server, as the answer states it.
func (r *Reading) Note(a *fetch.Answer) {
	r.ETag, r.Asked = a.ETag, a.Echoed
	r.Checked, _ = a.Checked()
	r.Made, _ = a.Made()
	r.Age = a.Age()
	r.Date, _ = http.ParseTime(a.Header.Get("Date"))
}

// NoteNext notes the dates of the answer with a further document. It reports whether that is older than accepted
// readings in m: then its entries count, but the mark and the ETag are kept.
func (r *Reading) NoteNext(m *Memory, a *fetch.Answer) {
	r.Asked = r.Asked && a.Echoed
	made, known := a.Made()
	if !known || m == nil || m.Proves {
		return
	}
	r.Mixed = r.Mixed || made.Before(m.Made.Add(-time.Second))
}

// Again makes r equal to the doubtful reading, whose document is unchanged.
func (r *Reading) Again(d *Doubt) {
	r.Same, r.Loss, r.Why, r.Feed, r.Head, r.HeadAt, r.ETag = true, d.Loss, d.Reason, d.Feed, d.Head, d.HeadAt, d.ETag
	if d.Opening != "" {
		r.Openings = []string{d.Opening}
	}
}

// Proves reports whether the source states the proofs for a confirmed loss: openings, and digests of its states.
func (r *Reading) Proves() bool { return len(r.Openings) > 0 }

// HoldsTime states that a reading holds nothing later than its newest entry, because entries of records come and go.
func (r *Reading) HoldsTime(d *Doubt) {
	at := r.HeadAt
	r.Holds = func(string) bool { return d != nil && !at.Before(d.HeadAt) }
}

func (r *Reading) holds(key string) bool {
	return key == "" || key == r.Head || r.Holds != nil && r.Holds(key)
}

// Verdict is the decision about a reading.
type Verdict int

// The verdicts.
const (
	GoesOn   Verdict = iota // it is applied
	Doubtful                // it is not applied
	Believed                // it replaces the held state
)

// Memory is the data about accepted and doubted readings of a source. It is stored in the transaction of the mark.
type Memory struct {
	// Span has the entries of the documents that were read last, of sources that prove nothing. It is stored
	// separately.
	Span *Span `json:"-"`

	Feed     string    `json:"feed,omitempty"`
	Proves   bool      `json:"proves,omitempty"`   // the source states openings
	Stated   bool      `json:"stated,omitempty"`   // it has stated the digest of a state
	Openings []string  `json:"openings,omitempty"` // all that were seen, the newest last
	Checked  time.Time `json:"checked,omitzero"`   // of the last accepted reading
	Made     time.Time `json:"made,omitzero"`      // likewise
	// InStep is a time by the clock here, as of which the source has stated its data. An answer that states no later
	// Checked does not change it. It is zero if the source states no Checked.
	InStep time.Time   `json:"inStep,omitzero"`
	Held   []HeadSince `json:"held,omitempty"` // the newest last
	// since when the source answers with an earlier Checked than was accepted
	Behind *Moment   `json:"behind,omitempty"`
	Whole  time.Time `json:"whole,omitzero"` // when the source was last read to its end, by the clock here
	// the time when a loss was last believed; recovered entries may be far back
	Lowered time.Time `json:"lowered,omitzero"`
	Doubt   *Doubt    `json:"doubt,omitempty"`
	Absent  []Absence `json:"absent,omitempty"` // records that readings lacked, by the first one

	handled map[mark16]bool // in this round, though the mark is not past them
}

// Handle notes that an entry is handled, though the mark is not past it. It is so until a reading is accepted, which
// remembers it.
func (m *Memory) Handle(key string) {
	if m.handled == nil {
		m.handled = map[mark16]bool{}
	}
	m.handled[hash16(key)] = true
}

// Handles reports whether Handle was called with a key.
func (m *Memory) Handles(key string) bool { return m.handled[hash16(key)] }

// HeadSince is the local time since which the newest entry is known.
type HeadSince struct {
	Head string    `json:"head"` // a hash of its key
	At   time.Time `json:"at"`
}

// Moment is a time by the clock here, and by that of the source. No monotonic clock outlasts a process.
type Moment struct {
	Wall time.Time `json:"wall"`
	Date time.Time `json:"date,omitzero"`
}

// since returns the time since the moment by both clocks. If the local clock was set back, the wait starts again.
func (m *Moment) since(now, date time.Time) time.Duration {
	passed := now.Sub(m.Wall)
	if passed < 0 {
		m.Wall, m.Date = now, date
		return 0
	}
	if !date.IsZero() && !m.Date.IsZero() {
		passed = min(passed, date.Sub(m.Date)+time.Second) // Date has whole seconds
	}
	return passed
}

// Doubt is a reading that would remove data, and is not confirmed.
type Doubt struct {
	Loss   Loss      `json:"loss"`
	Reason string    `json:"reason"`
	Moment           // of the first reading that counts
	First  time.Time `json:"first"` // when the doubt was opened, by the clock here

	// Counted states that a reading counts; others were a cache's, or made too early
	Counted bool      `json:"counted,omitempty"`
	Asked   bool      `json:"asked,omitempty"`  // that reading was no cache's
	N       int       `json:"n,omitempty"`      // readings that count
	Needed  int       `json:"needed,omitempty"` // so many of them are believed; 0: it is not readings that settle it
	Until   time.Time `json:"until,omitzero"`   // they are believed at the earliest then, by the clock here
	Feed    string    `json:"feed,omitempty"`
	Head    string    `json:"head,omitempty"`
	HeadAt  time.Time `json:"headAt,omitzero"`
	Opening string    `json:"opening,omitempty"` // the last one of the reading
	Checked time.Time `json:"checked,omitzero"`
	ETag    string    `json:"etag,omitempty"` // of its first document
	Lost    int       `json:"lost,omitempty"` // records that would be removed, or go back, where that is known
	Held    int       `json:"held,omitempty"` // all records that are held, likewise
}

// opened returns the opening time of a doubt that continues at now; nil if there is none.
func (d *Doubt) opened(now time.Time) time.Time {
	if d == nil {
		return now
	}
	return d.First
}

// The numbers of readings after which a loss is believed, of a source that proves nothing and of one that proves it.
const (
	readingsToBelieve = 3
	readingsOfProof   = 2
)

// Grace is the time after which no entry of an earlier time appears on servers that prove nothing.
const Grace = time.Minute

// maxWait is the longest time for which a state from before is doubted.
const maxWait = 24 * time.Hour

// What is remembered at most.
const (
	rememberedOpenings = 100
	rememberedHeads    = 40
)

// Judge decides about readings.
type Judge struct {
	Now     time.Time     // by the clock here
	After   time.Duration // the time between the first and the last reading that confirm a loss
	Confirm bool          // a person confirms the doubt that was shown
	Longest time.Duration // for which a state from before is doubted; default 24 hours
	Nothing bool          // nothing is held that could be removed
	Ask     bool          // an answer of a cache proves nothing
}

// Verdict judges a reading, and updates m for the next ones.
func (j Judge) Verdict(m *Memory, r *Reading) Verdict {
	behind := j.behind(m, r)
	d, proves := m.Doubt, m.provesWith(r)
	if r.Loss == LossNone {
		switch {
		case m.stale(r, behind):
			return j.doubt(m, r, LossStale,
				"it has news, but was made before what was read last: a cache on the way is stale, or a server is behind")
		case j.stuck(m, r) && !r.Asked:
			return j.doubt(m, r, LossStale,
				"a cache on the way answers in the server's place: nothing it has stated is later than "+
					m.Checked.UTC().Format(time.RFC3339))
		case d != nil && proves && d.Asked && (!r.Asked || r.Checked.Before(d.Checked)):
			return Doubtful // it may be a cache's from before the doubtful one
		}
		return GoesOn
	}
	switch {
	case r.Silent, proves && (!r.Asked || behind || r.Replica && !r.Checked.After(m.Checked)), !proves &&
		!r.Made.IsZero() && r.Made.Before(m.Made):
		// It may be older than an accepted one.
		if d == nil || r.Asked && !d.Asked {
			j.open(m, r, r.Loss, r.Why, false)
		}
		return Doubtful
	case j.Nothing:
		j.open(m, r, r.Loss, r.Why, true)
		return Believed
	case d == nil || !d.Counted || d.Feed != r.Feed || !r.holds(d.Head):
		j.open(m, r, r.Loss, r.Why, true)
		return Doubtful
	case j.Confirm:
		return Believed
	}
	d.N++
	passed := d.since(j.Now, r.Date)
	if wait := j.expect(m, r); passed < wait || d.N < d.Needed {
		return Doubtful
	}
	return Believed
}

// expect sets the readings that confirm the doubt, and the earliest time. It returns the time since the first.
func (j Judge) expect(m *Memory, r *Reading) time.Duration {
	d, proves, wait := m.Doubt, m.provesWith(r), j.After
	if !proves || (r.Loss == LossOlder || r.Loss == LossEmpty) && r.Feed == m.Feed && m.knows(r.Openings) {
		wait = max(wait, min(cmp.Or(j.Longest, maxWait), m.outdated(r.Head, d.Wall)))
	}
	if d.Needed = readingsToBelieve; proves {
		d.Needed = readingsOfProof
	}
	d.Until = d.Wall.Add(wait)
	return wait
}

// behind reports whether the source shows an earlier state than an accepted one. It is behind, or its clock was set
// back. The latter is believed after some time without a later state.
func (j Judge) behind(m *Memory, r *Reading) bool {
	if !m.provesWith(r) || m.Checked.IsZero() {
		return false
	}
	if !r.Checked.Before(m.Checked) {
		m.Behind = nil
		return false
	}
	if !r.Asked {
		return false
	}
	if m.Behind == nil {
		m.Behind = &Moment{j.Now, r.Date}
	}
	return !j.Confirm && m.Behind.since(j.Now, r.Date) < j.After
}

// stale reports whether a reading with news that continues the held state is older than an accepted one: after a
// believed restore, an old answer still contains the new, lower mark.
func (m *Memory) stale(r *Reading, behind bool) bool {
	switch {
	case r.Same || !r.News || m.Feed == "":
		return false
	case m.provesWith(r) && r.Asked:
		return behind
	case m.provesWith(r):
		return r.Checked.Before(m.Checked)
	}
	return !r.Made.IsZero() && r.Made.Before(m.Made.Add(-time.Second))
}

// stuck reports whether the source has stated no later time for so long that a cache may answer in its place.
func (j Judge) stuck(m *Memory, r *Reading) bool {
	return m.Proves && !m.Checked.IsZero() && !r.News && !r.Checked.After(m.Checked) &&
		(j.Ask || j.Now.Sub(m.InStep) >= j.After)
}

// provesWith reports whether the source proves a reading. A proxy may remove the headers for that.
func (m *Memory) provesWith(r *Reading) bool { return m.Proves && !r.Checked.IsZero() }

func (m *Memory) knows(openings []string) bool {
	return len(openings) > 0 && slices.Contains(m.Openings, openings[0])
}

// outdated returns how long before a time the state with a head was known to be out of date.
func (m *Memory) outdated(head string, at time.Time) time.Duration {
	var since time.Time
	for i := len(m.Held) - 1; i >= 0 && m.Held[i].Head != ShortHash(head); i-- {
		since = m.Held[i].At
	}
	if since.IsZero() {
		return 0
	}
	return at.Sub(since)
}

// doubt notes a doubt that is no loss by itself, and ends with the next right reading.
func (j Judge) doubt(m *Memory, r *Reading, loss Loss, reason string) Verdict {
	if m.Doubt == nil {
		j.open(m, r, loss, reason, false)
		m.Doubt.ETag, m.Doubt.Asked = "", false
	}
	return Doubtful
}

func (j Judge) open(m *Memory, r *Reading, loss Loss, reason string, counted bool) {
	d := &Doubt{
		Loss: loss, Reason: reason, Moment: Moment{j.Now, r.Date}, First: m.Doubt.opened(j.Now), Counted: counted,
		Asked: r.Asked, Feed: r.Feed, Head: r.Head, HeadAt: r.HeadAt, Checked: r.Checked, ETag: r.ETag,
	}
	if counted {
		d.N = 1
	}
	if len(r.Openings) > 0 {
		d.Opening = r.Openings[0]
	}
	if m.Doubt = d; counted {
		j.expect(m, r)
	}
}

// Accept notes that a reading was applied.
func (j Judge) Accept(m *Memory, r *Reading) {
	if r.Proves() || r.Feed != m.Feed && !r.Same {
		m.Proves = r.Proves()
	}
	if r.Feed != "" {
		m.Feed = r.Feed
	}
	for _, id := range slices.Backward(r.Openings) {
		if !slices.Contains(m.Openings, id) {
			m.Openings = append(m.Openings, id)
		}
	}
	m.Openings = last(m.Openings, rememberedOpenings)
	if n := len(m.Held); r.Head != "" && (n == 0 || m.Held[n-1].Head != ShortHash(r.Head)) {
		m.Held = last(append(m.Held, HeadSince{ShortHash(r.Head), j.Now}), rememberedHeads)
	}
	switch behind := m.Behind != nil && m.Behind.since(j.Now, r.Date) < j.After && !j.Confirm; {
	case behind:
	case r.Checked.After(m.Checked), r.Asked && !r.Checked.IsZero(): // or the clock of the source was set back
		m.Checked, m.InStep = r.Checked, j.Now.Add(-r.Age)
	}
	if r.Made.After(m.Made) {
		m.Made = r.Made
	}
	if r.ToEnd {
		m.Whole = j.Now
	}
	m.Doubt, m.handled = nil, nil
}

// Missed notes a doubt that the next right reading ends.
func (m *Memory) Missed(now time.Time, loss Loss, reason string) {
	now = now.UTC()
	m.Doubt = &Doubt{Loss: loss, Reason: reason, Moment: Moment{Wall: now}, First: m.Doubt.opened(now)}
}

// Replace notes that a reading replaced the held state. It drops the data about the former history.
func (j Judge) Replace(m *Memory, r *Reading) {
	m.Held, m.Behind, m.Absent, m.Span = nil, nil, nil, nil
	m.Checked, m.Made, m.InStep = time.Time{}, time.Time{}, time.Time{}
	j.Accept(m, r)
	m.Lowered = j.Now
}

func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
