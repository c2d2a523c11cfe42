package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tmshare/tmshare/internal/cli"
)

// read reads a file in YAML. Its keys are names of flags. One that is repeatable has a list, or, where the flag takes
// NAME=VALUE, a mapping.
func read(path string) ([]cli.Given, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	var document yaml.Node
	d := yaml.NewDecoder(f)
	if err := d.Decode(&document); errors.Is(err, io.EOF) { // it is empty
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %s; write KEY: VALUE, a line each", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is something behind the end of the document (---): leave it out", path)
	}
	r := reader{path: path, lines: map[string]int{}}
	top := document.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, r.wrong(top, "write KEY: VALUE, a line each")
	}
	for i := 0; i < len(top.Content); i += 2 {
		if err := r.key(top.Content[i], top.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return r.all, nil
}

type reader struct {
	path  string
	lines map[string]int // of the keys
	all   []cli.Given
}

func (r *reader) place(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.path, n.Line) }

func (r *reader) wrong(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %s", r.place(n), fmt.Sprintf(format, args...))
}

// key reads a key and its value.
func (r *reader) key(key, value *yaml.Node) error {
	if line := r.lines[key.Value]; line > 0 {
		return r.wrong(key, "%s is in line %d already: leave one out, or write a list [a, b] where it is repeatable",
			key.Value, line)
	}
	r.lines[key.Value] = key.Line
	g := cli.Given{Flag: key.Value, Place: r.place(key)}
	switch value.Kind {
	case yaml.SequenceNode:
		for _, n := range value.Content {
			if n.Kind != yaml.ScalarNode {
				return r.wrong(n, "%s has a list of values; write each as text", key.Value)
			}
			g.Values = append(g.Values, n.Value)
		}
	case yaml.MappingNode:
		names := map[string]bool{}
		for i := 0; i < len(value.Content); i += 2 {
			name, n := value.Content[i], value.Content[i+1]
			if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || names[name.Value] {
				return r.wrong(name, "%s: write NAME: VALUE for each name, once", key.Value)
			}
			names[name.Value] = true
			g.Values = append(g.Values, name.Value+"="+n.Value)
		}
	case yaml.ScalarNode:
		if value.Tag == "!!null" {
			return r.wrong(key, "%s has no value: write one, or \"\", or leave the key out", key.Value)
		}
		g.Values = []string{value.Value}
	default:
		return r.wrong(value, "%s: write the value in place of a reference to it", key.Value)
	}
	if len(g.Values) > 0 {
		r.all = append(r.all, g)
	}
	return nil
}
