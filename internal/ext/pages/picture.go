package pages

// mostAround is the number of neighbours in the picture of a topic.
const mostAround = 16

// picture shows a topic and topics associated with it. Each is a box that links to a page.
type picture struct {
	Width, Height int // of the whole picture, in its own coordinates
	Self          box
	Around        []neighbour
	More          bool // the topic has more neighbours
}

type box struct {
	Title      string
	Lang       string // of the title
	X, Y, W, H int    // of the upper left corner, and the size
	TextX      int    // of the middle of the title
	TextY      int
}

// neighbour is an associated topic and the label of the line to it.
type neighbour struct {
	box
	URL  string
	What string // type of the association
	Line line

	IsType, IsInstance bool // it is a type of the topic, or an instance
}

// line leads from a box to another.
type line struct{ X1, Y1, X2, Y2 int }

// The measures of pictures. Letters are about 8 units wide, so titles have up to 24 of them.
const (
	boxWidth, boxHeight = 220, 32
	rowHeight           = 58 // with the line above a box for its label
	gap                 = 100
	letters             = 24
)

// pictureOf draws a topic with some of its types, of the players of its associations of each type, and of its
// instances, so that all kinds appear. It returns nil if there are none.
func pictureOf(self link, described *topic) *picture {
	p := &picture{More: len(described.Next) > 0 || described.Pages[typesList] != nil ||
		described.Pages[instancesList] != nil}
	kinds := make([][]neighbour, 0, len(described.Associations)+2)
	known := map[string]bool{}
	add := func(kind int, n neighbour, to link) {
		if !known[to.URL] {
			known[to.URL] = true
			n.URL, n.Title, n.Lang = to.URL, shortened(to.Title), to.Lang
			kinds[kind] = append(kinds[kind], n)
		}
	}
	kinds = append(kinds, nil)
	for _, typ := range described.Types {
		add(0, neighbour{IsType: true}, typ.link)
	}
	for i, group := range described.Associations {
		kinds = append(kinds, nil)
		p.More = p.More || group.Pager != nil
		for _, a := range group.Items {
			for _, other := range a.Others {
				add(i+1, neighbour{What: shortened(group.Type.Title)}, other.Player)
			}
		}
	}
	kinds = append(kinds, nil)
	for _, instance := range described.Instances {
		add(len(kinds)-1, neighbour{IsInstance: true}, instance.link)
	}
	if len(known) == 0 || !described.Whole {
		return nil
	}
	p.More = p.More || len(known) > mostAround
	for _, n := range shares(kinds, mostAround) {
		p.Around = append(p.Around, n...)
	}
	p.Self.Title, p.Self.Lang = shortened(self.Title), self.Lang
	p.place()
	return p
}

// shares returns the first items of each list, as many as possible of each, and most in all.
func shares[T any](lists [][]T, most int) [][]T {
	taken := make([]int, len(lists))
	for round := 0; most > 0; round++ {
		before := most
		for i, list := range lists {
			if most > 0 && len(list) > round {
				taken[i]++
				most--
			}
		}
		if most == before {
			break
		}
	}
	some := make([][]T, len(lists))
	for i, list := range lists {
		some[i] = list[:taken[i]]
	}
	return some
}

// place gives all a place: the topic in the middle, half of the others on each side.
func (p *picture) place() {
	rows := (len(p.Around) + 1) / 2
	p.Width, p.Height = 3*boxWidth+2*gap, rows*rowHeight
	p.Self.at(boxWidth+gap, (p.Height-boxHeight)/2)
	for i := range p.Around {
		n := &p.Around[i]
		x, column, row := 0, rows, i
		end, from := boxWidth, p.Self.X
		if i >= rows {
			x, column, row = 2*(boxWidth+gap), len(p.Around)-rows, i-rows
			end, from = x, p.Self.X+boxWidth
		}
		top := (p.Height - column*rowHeight) / 2
		n.at(x, top+row*rowHeight+rowHeight-boxHeight-4)
		n.Line = line{from, p.Self.Y + boxHeight/2, end, n.Y + boxHeight/2}
	}
}

func (b *box) at(x, y int) {
	b.X, b.Y, b.W, b.H, b.TextX, b.TextY = x, y, boxWidth, boxHeight, x+boxWidth/2, y+boxHeight/2+5
}

// shortened returns as much of a text as a box has room for.
func shortened(text string) string {
	n := 0
	for i := range text {
		if n++; n > letters {
			return text[:i] + "…"
		}
	}
	return text
}
