// Package control lets commands work on a data folder that another process
// holds. Badger's lock admits one process; that one serves a Unix socket in the
// folder, and executes there the command lines that other processes send.
package control

import (
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/term"

	"github.com/tmshare/tmshare/internal/titles"
)

// Request is a command line, and the data of the process in which it was typed.
type Request struct {
	Program string // which begins its messages
	Args    []string
	Dir     string            // base of relative paths
	Env     map[string]string // the variables that begin with Prefix

	// StdoutTerminal and StderrTerminal state whether the outputs are terminals.
	StdoutTerminal, StderrTerminal bool
	// Width is the number of columns of that terminal, 0 if it is not known.
	Width int

	Stdin          io.Reader `json:"-"`
	Stdout, Stderr io.Writer `json:"-"`
}

// Prefix begins the names of the environment variables that commands read.
const Prefix = "TMSHARE_"

// language is the variable for the languages of titles, whose default is the locale.
const language = Prefix + "LANG"

// Local returns the request of this process, which runs program.
func Local(program string, args []string) *Request {
	r := &Request{
		Program: program, Args: args, Env: map[string]string{}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())), StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	r.Dir, _ = os.Getwd() // of a removed folder it is "": uses of relative paths will fail
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, Prefix) {
			r.Env[name] = value
		}
	}
	if tag := titles.OfLocale(os.Getenv); tag != "" && r.Env[language] == "" {
		r.Env[language] = tag
	}
	if r.StderrTerminal {
		r.Width, _, _ = term.GetSize(int(os.Stderr.Fd()))
	}
	return r
}

// Getenv returns the value of a variable, "" if it is not set.
func (r *Request) Getenv(name string) string { return r.Env[name] }

// Path returns a path that means the same in every process. "-" stays: it is
// standard input or output.
func (r *Request) Path(path string) string {
	if path == "" || path == "-" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.Dir, path)
}

// version returns the version of the source of this program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
			v += " " + s.Value
		}
	}
	return v
}
