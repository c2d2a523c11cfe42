package rdf

// maxGroup is the maximum number of statements in a group.
const maxGroup = 1000

// Groups groups consecutive statements about one resource, for writers whose memory must not grow with the graph.
type Groups struct {
	write func([]Quad) error
	group []Quad
}

// NewGroups hands each group to write, which must not keep it. No group is empty.
func NewGroups(write func([]Quad) error) *Groups { return &Groups{write: write} }

// Add adds a statement. The error is that of writing the group before.
func (g *Groups) Add(q Quad) error {
	if n := len(g.group); n == maxGroup || n > 0 && g.group[0].Subject != q.Subject {
		if err := g.Flush(); err != nil {
			return err
		}
	}
	g.group = append(g.group, q)
	return nil
}

// Flush writes the last group.
func (g *Groups) Flush() error {
	if len(g.group) == 0 {
		return nil
	}
	err := g.write(g.group)
	g.group = g.group[:0]
	return err
}
