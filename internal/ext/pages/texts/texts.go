// Package texts has all texts of pages: a template for each page, with its sentences in English, the words and messages
// that code inserts, and their translations. Translators and editors of the pages need this folder only.
package texts

import (
	"embed"
	"html/template"
	"sync"
)

// Pages are the templates of pages: the frame of all, a figure over time, those of a server, those of a node, and those
// of a client's folder alone.
//
//go:embed *.html server/*.html node/*.html ui/*.html
var Pages embed.FS

// Templates are one for each language, made of files. It is parsed once it is needed.
type Templates struct {
	Files []string // the first one is executed; the others define templates that it uses
	Funcs func(*Language) template.FuncMap

	mu sync.Mutex
	in map[*Language]*template.Template
}

// In returns the template in a language.
func (t *Templates) In(l *Language) (*template.Template, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.in[l]; made != nil {
		return made, nil
	}
	made := template.New(t.Files[0])
	if t.Funcs != nil {
		made.Funcs(t.Funcs(l))
	}
	for _, file := range t.Files {
		source, err := l.Template(file)
		if err == nil {
			_, err = made.Parse(source)
		}
		if err != nil {
			return nil, err
		}
	}
	if t.in == nil {
		t.in = map[*Language]*template.Template{}
	}
	t.in[l] = made
	return made, nil
}
