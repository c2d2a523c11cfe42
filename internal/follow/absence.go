package follow

import (
	"fmt"
	"slices"
	"time"
)

// MaxAbsent is the number of absent records that are remembered. A person has to confirm the loss of more.
const MaxAbsent = 200_000

// Absence is records that a reading has lacked first, or has had in older versions than are held. What a list does not
// name is removed when three readings have lacked it, record by record.
type Absence struct {
	Moment
	N       int      `json:"n"` // readings that lacked them
	Records []string `json:"records"`
}

// Lack notes the records that a reading lacks. It returns those that are now believed to be deleted.
func (j Judge) Lack(m *Memory, r *Reading, lacking []string) (believed map[string]bool) {
	believed = map[string]bool{}
	if len(lacking) > MaxAbsent {
		if j.Confirm && m.Doubt != nil && m.Doubt.Loss == LossRecords {
			return nil
		}
		m.Absent = nil
		return believed
	}
	left := make(map[string]bool, len(lacking))
	for _, id := range lacking {
		left[id] = true
	}
	var groups []Absence
	for _, g := range m.Absent {
		g.Records = slices.DeleteFunc(slices.Clone(g.Records), func(id string) bool { return !left[id] })
		if len(g.Records) == 0 {
			continue
		}
		g.N++
		confirmed := j.Confirm || g.since(j.Now, r.Date) >= j.After && g.N >= readingsToBelieve
		for _, id := range g.Records {
			delete(left, id)
			if confirmed {
				believed[id] = true
			}
		}
		groups = append(groups, g)
	}
	if len(left) > 0 {
		g := Absence{Moment: Moment{j.Now, r.Date}, N: 1}
		for _, id := range lacking {
			if left[id] {
				g.Records = append(g.Records, id)
			}
		}
		groups = append(groups, g)
	}
	m.Absent = groups
	return believed
}

// due reports whether the next reading may confirm absent records, for which it must be a whole one.
func (j Judge) due(m *Memory) bool {
	return slices.ContainsFunc(m.Absent, func(g Absence) bool {
		return g.N+1 >= readingsToBelieve && j.Now.Sub(g.Wall) >= j.After
	})
}

// again counts a reading that is the same as the one before.
func (j Judge) again(m *Memory) {
	for i := range m.Absent {
		m.Absent[i].N++
	}
	m.expectAbsent(j.After)
}

// expectAbsent sets in a doubt of records the number of readings without the longest absent ones, and the time when
// they will be believed to be deleted.
func (m *Memory) expectAbsent(after time.Duration) {
	if d := m.Doubt; d != nil && d.Loss == LossRecords && len(m.Absent) > 0 {
		d.N, d.Needed, d.Until = m.Absent[0].N, readingsToBelieve, m.Absent[0].Wall.Add(after)
	}
}

// doubtOf returns the doubt of records that are absent.
func (j Judge) doubtOf(before *Doubt, r *Reading, loss Loss, lost int, reason string) *Doubt {
	return &Doubt{Loss: loss, Reason: reason, Moment: Moment{j.Now, r.Date}, First: before.opened(j.Now), Feed: r.Feed,
		Head: r.Head, Lost: lost}
}

// day is the time between two whole readings of a source that proves nothing.
const day = 24 * time.Hour

// isDue reports whether the whole source is to be read.
func (j Judge) isDue(m *Memory) bool {
	passed := j.Now.Sub(m.Whole)
	return !m.Whole.IsZero() && (passed < 0 || passed >= day)
}

// isLower reports whether a loss was believed lately. If it was an error, the lost entries are far back, so the whole
// source is read after its next change.
func (j Judge) isLower(m *Memory) bool {
	passed := j.Now.Sub(m.Lowered)
	return !m.Lowered.IsZero() && passed >= 0 && passed < day
}

func absentReason(n int) string {
	count := fmt.Sprint(n)
	if n > MaxAbsent {
		count = fmt.Sprintf("more than %d", MaxAbsent)
	}
	return fmt.Sprintf("the source does not list %s records any more, or in older versions than are held", count)
}
