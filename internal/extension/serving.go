package extension

import (
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// Serving holds the settings of a server's addresses.
type Serving struct {
	Listen, BaseURL, Metrics string
	TokenFile                string
	ReadTokenFiles           []string // NAME=FILE
	Cert, Key                string
	Maps                     []string // NAME=FILE
	Root                     string   // a folder below which the files are that they merge in
	Watch                    bool     // follow changes of these files
}

// Given returns what the flags of such settings are in fl, by their names, without those that are as by default. Files
// have absolute paths, so that other processes can take them.
func Given(fl *pflag.FlagSet) map[string][]string {
	given, own, s := map[string][]string{}, pflag.NewFlagSet("", pflag.ContinueOnError), Serving{}
	s.AddFlags(own)
	s.AddFiles(own)
	own.VisitAll(func(o *pflag.Flag) {
		f := fl.Lookup(o.Name)
		if !f.Changed {
			return
		}
		values := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, value := range values {
			name, file := "", value
			switch what, _ := pflag.UnquoteUsage(f); what {
			case "NAME=FILE":
				name, file, _ = strings.Cut(value, "=")
				name += "="
				fallthrough
			case "file", "folder":
				if absolute, err := filepath.Abs(file); err == nil && file != "" {
					value = name + absolute
				}
			}
			given[f.Name] = append(given[f.Name], value)
		}
	})
	return given
}

// AddFiles adds the flags for published files.
func (s *Serving) AddFiles(fl *pflag.FlagSet) {
	fl.StringArrayVar(&s.Maps, "map", nil,
		"`NAME=FILE`: publish the file as collection NAME, if there is none yet (repeatable)")
	fl.StringVar(&s.Root, "root", "",
		"`folder` below which the files are that a mergeMap of a --map names (default: that of the map)")
	fl.BoolVar(&s.Watch, "watch", false, "follow the files of --map: publish them whenever they change")
}

// AddFlags adds the flags of these settings.
func (s *Serving) AddFlags(fl *pflag.FlagSet) {
	fl.StringVar(&s.Listen, "listen", "127.0.0.1:8080", "`address` that the server listens on")
	fl.StringVar(&s.BaseURL, "base-url", "", "public `URL` of the server (default: the address listened on)")
	fl.StringVar(&s.TokenFile, "token-file", "", "`file` with the tokens that may write, one on each line, or NAME: TOKEN")
	fl.StringArrayVar(&s.ReadTokenFiles, "read-token-file", nil,
		"`NAME=FILE`: only who has one of the tokens in the file, or one that may write, may read collection NAME "+
			"(repeatable)")
	fl.StringVar(&s.Cert, "tls-cert", "",
		"`file` with the certificate and those that lead to its root, PEM; with --tls-key, serve HTTPS")
	fl.StringVar(&s.Key, "tls-key", "", "`file` with the key of the certificate, PEM")
	fl.StringVar(&s.Metrics, "metrics-listen", "",
		"`address` to serve /metrics and /status at, for all (default: /metrics with all else, for this machine and write "+
			"tokens only; no /status)")
}
