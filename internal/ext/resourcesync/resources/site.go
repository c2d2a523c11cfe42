package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// Site holds the URLs of the documents of a collection. No URL ends in a slash or is a prefix of another's path,
// because some readers make files of them.
type Site struct {
	Server  string // base URL of the server
	Map     string // URL of the topic map
	Epoch   uuid.UUID
	Mirrors []string // URLs under which others serve the collection
	Via     string   // URL of the collection that this one republishes, or ""
}

// layout is the version of the documents' layout. A change makes stored documents invalid.
const layout = "3"

// Tag is part of the names of stored files. It differs for other sites and other histories of the collection.
func (s *Site) Tag() string {
	sum := sha256.Sum256(
		[]byte(strings.Join(append([]string{layout, s.Server, s.Map, s.Epoch.String(), s.Via}, s.Mirrors...), "\x00")))
	return hex.EncodeToString(sum[:6])
}

// TagPattern is a regular expression for tags.
const TagPattern = "[0-9a-f]{12}"

// The URLs of documents.

func SourceDescriptionURL(server string) string { return server + "/.well-known/resourcesync" }
func descriptionURL(server string, n int) string {
	return fmt.Sprintf("%s/resourcesync/description-%d.xml", server, n)
}
func (s *Site) document(name string) string { return s.Map + "/resourcesync/" + name }
func (s *Site) CapabilityListURL() string   { return s.document("capabilitylist.xml") }
func (s *Site) ResourceListURL() string     { return s.document("resourcelist.xml") }
func (s *Site) ResourceDumpURL() string     { return s.document("resourcedump.xml") }
func (s *Site) ChangeListURL() string       { return s.document("changelist.xml") }
func (s *Site) OpenChangesURL() string      { return s.document("changelist-open.xml") }
func (s *Site) ChangeListIndexURL() string  { return s.document("changelist-index.xml") }
func (s *Site) ChangeDumpURL() string       { return s.document("changedump.xml") }
func (s *Site) AboutURL() string            { return s.Map + ".html" }

func (s *Site) changesURL(number uint64, dump, ending string) string {
	return s.document(fmt.Sprintf("%s-%s-%d%s", dump, s.Tag(), number, ending))
}

func (s *Site) setURL(kind string, seq uint64, n int, ending string) string {
	return s.document(fmt.Sprintf("%s-%s-%d-%d%s", kind, s.Tag(), seq, n, ending))
}

// The URLs of resources and of the documents that they link to.

func (s *Site) topicURL(si fragment.Ref) string { return s.Map + "/topics/" + fragment.Key(si) }
func (s *Site) TimeGateURL(si fragment.Ref) string {
	return s.Map + "/timegate/" + fragment.Key(si)
}
func (s *Site) TimeMapURL(si fragment.Ref) string {
	return s.Map + "/timemap/" + fragment.Key(si)
}

func (s *Site) mementoURL(c *store.Collection, e *store.Entry) string {
	return s.Map + "/mementos/" + c.ID(e).String()
}

// form is a form in which a resource is served.
type form struct {
	version   xtm.Version
	digest    int // index of its digest in entries
	ending    string
	mediaType string
}

var forms = func() (all []form) {
	for i, v := range store.Forms {
		f := formats.StoredAs(v)
		all = append(all, form{v, i, f.URLEnding, f.MediaType()})
	}
	return all
}()

// formsOf returns the offered forms of a record; the first one is the default, without a file extension.
func formsOf(c *store.Collection, e *store.Entry) []form {
	offered := c.FormsOf(e)
	return slices.DeleteFunc(slices.Clone(forms), func(f form) bool { return !slices.Contains(offered, f.version) })
}
