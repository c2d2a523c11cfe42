package collections

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/xtm"
)

// Settings are the settings that the owner of a collection may change at any time. For zero values the server decides.
type Settings struct {
	Title   string `json:",omitempty"`
	Summary string `json:",omitempty"`

	// Language is the language of the titles of topics, a tag (BCP 47): names in it are preferred. "" is replaced by
	// the language of most names of the first version that has any with one.
	Language string `json:",omitempty"`

	// DocumentSize is the number of entries in an archive document of the
	// fragments feed. A new one holds from the next document on.
	DocumentSize int

	// OmitInstances leaves the instances out of the fragments of classes.
	OmitInstances bool `json:",omitempty"`

	// RecordForms are the forms in which the records of topics are offered; none means all of Forms. Fragments and
	// snapshots are available in all of them.
	RecordForms []xtm.Version `json:",omitempty"`

	// RDF makes fragments and snapshots available in RDF, too; nil: if the first version of the map is RDF.
	RDF *bool `json:",omitempty"`

	SnapshotEvery int           `json:",omitempty"` // changes after which a snapshot is taken
	SnapshotAfter time.Duration `json:",omitempty"` // time after which a changed map gets one
	SnapshotsKept int           `json:",omitempty"`

	KeepEntries uint64        `json:",omitempty"` // how many of the last entries are kept
	KeepFor     time.Duration `json:",omitempty"` // how long entries are kept

	// Sign is the path of the key file that signs checkpoints of the log; "": they are not signed.
	Sign string `json:",omitempty"`

	Mirrors []string `json:",omitempty"` // URLs under which others serve the collection, the preferred first
	Via     string   `json:",omitempty"` // URL of the collection that this one republishes

	// Ext are the settings of extensions. A program keeps those of extensions that it does not have as they are.
	Ext map[string]json.RawMessage `json:",omitempty"`
}

// Validate checks s.
func (s *Settings) Validate() error {
	for _, x := range Core() {
		if err := x.check(reflect.ValueOf(x.Field(s)).Elem()); err != nil {
			return err
		}
	}
	if len(s.Mirrors) > maxMirrors {
		return fmt.Errorf("mirrors (--mirrors) names more than %d: leave some out", maxMirrors)
	}
	for i, m := range s.Mirrors {
		if !isBase(m) || slices.Contains(s.Mirrors[:i], m) {
			return fmt.Errorf(
				"the mirror %q is not the http or https URL of a collection, or is named twice; give each once, as in "+
					"https://maps.example.org/topicmaps/NAME", m)
		}
	}
	if s.Via != "" && !isBase(s.Via) {
		return fmt.Errorf(
			"the source %q (via) is not the http or https URL of a collection; give it as in "+
				"https://maps.example.org/topicmaps/NAME", s.Via)
	}
	for i, v := range s.RecordForms {
		if !slices.Contains(rendered.Forms[:], v) || slices.Contains(s.RecordForms[:i], v) {
			return fmt.Errorf(
				"recordFormats (--record-formats): there is no XTM %s, or it is named twice; give xtm1, xtm2.1, or "+
					"nothing for both", v)
		}
	}
	if s.Language != "" {
		if _, err := titles.ParseLanguage(s.Language); err != nil {
			return fmt.Errorf("language (--language): %w", err)
		}
	}
	if s.Sign != "" && !filepath.IsAbs(s.Sign) {
		return fmt.Errorf("sign (--sign): the path of the key file %q is not absolute; give it from the root on", s.Sign)
	}
	for _, t := range [][2]string{{"title", s.Title}, {"summary", s.Summary}} {
		if len(t[1]) > maxSettingText || strings.ContainsFunc(t[1], unicode.IsControl) {
			return fmt.Errorf("%s (--%[1]s) has control characters or more than %d bytes: give a shorter text in one line", t[0],
				maxSettingText)
		}
	}
	return nil
}

const (
	maxMirrors     = 10 // each is named with every resource
	maxSettingText = 4 << 10
	maxBase        = 200
)

// isBase reports whether URLs can be made of s by adding segments to its path.
func isBase(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		len(s) <= maxBase &&
		!strings.HasSuffix(s, "/") && u.String() == s && !strings.ContainsAny(s, "?#")
}
