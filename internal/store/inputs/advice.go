package inputs

import (
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/internal/store/collections"
)

// Advice returns which inputs of a derived collection are missing, and the remedy; "" if all exist.
func Advice(c *collections.Collection, all []State) string {
	var sentences, there, named []string
	for _, s := range all {
		switch s.Missing {
		case "":
			there = append(there, s.Name)
		case Gone:
			what := s.Name + " is gone"
			if s.URL != "" {
				what += " (subscribe to it again under this name)"
			}
			sentences = append(sentences, what)
		case Another:
			sentences = append(sentences, s.Name+" is another source now, which is not taken in")
		case Loading:
			sentences = append(sentences, fmt.Sprintf("%s is not loaded yet (\"tmshare-client sync %s\")", s.Name, s.Name))
		}
		if s.Missing == "" || s.Missing == Another {
			named = append(named, s.Name)
		}
	}
	if len(sentences) == 0 {
		return ""
	}
	text := strings.Join(sentences, ", ") + "; what was derived stays, and nothing more is derived until then"
	if len(named) > len(there) {
		text += fmt.Sprintf("; \"%s\" takes in what has the name", again(c, named))
	}
	if len(there) > 0 {
		text += fmt.Sprintf("; \"%s\" goes on without", again(c, there))
	}
	return text
}

// again is the command by which a collection is derived from those of its inputs that are named.
func again(c *collections.Collection, names []string) string {
	command := "tmshare-server derive " + c.Name + " --from " + strings.Join(names, ",")
	if f := c.Filter; !f.Empty() {
		for _, l := range f.Lists() {
			for _, ref := range *l.Refs {
				command += fmt.Sprintf(" --%s %s", l.Flag, ref)
			}
		}
		if f.ScopedNames {
			command += " --scoped-names"
		}
	}
	return command
}
