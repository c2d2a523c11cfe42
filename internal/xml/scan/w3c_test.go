package scan

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// conformanceCase is a TEST of the catalogues of the W3C XML Conformance Test
// Suite.
type conformanceCase struct {
	ID             string `xml:"ID,attr"`
	Type           string `xml:"TYPE,attr"`
	Entities       string `xml:"ENTITIES,attr"`
	Version        string `xml:"VERSION,attr"`
	Edition        string `xml:"EDITION,attr"`
	Recommendation string `xml:"RECOMMENDATION,attr"`
	Namespace      string `xml:"NAMESPACE,attr"`
	URI            string `xml:"URI,attr"`
	Output         string `xml:"OUTPUT,attr"`
	document       []byte
	canonical      []byte // the file that Output names
}

// applies tells cases for XML 1.0, fifth edition, with namespaces.
func (c conformanceCase) applies() bool {
	among := func(list, item string) bool { return list == "" || slices.Contains(strings.Fields(list), item) }
	return among(c.Version, "1.0") && among(c.Edition, "5") && !strings.HasSuffix(c.Recommendation, "1.1") && c.Namespace != "no"
}

// external reports that the outcome depends on entities that are not read.
func (c conformanceCase) external() bool { return c.Entities != "" && c.Entities != "none" }

func (c conformanceCase) hasDTD() bool {
	return bytes.Contains(bytes.ReplaceAll(c.document, []byte{0}, nil), []byte("<!DOCTYPE"))
}

// conformanceSuite reads the suite out of its archive.
func conformanceSuite(t testing.TB) []conformanceCase {
	f, err := os.Open(testenv.Shared(t, "conformance/w3c-xmlconf.tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := make(map[string][]byte)
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		files[path.Clean(header.Name)], err = io.ReadAll(archive)
		require.NoError(t, err)
	}
	var all []conformanceCase
	for name, content := range files {
		if !bytes.Contains(content, []byte("<TEST ")) {
			continue
		}
		for d := xml.NewDecoder(bytes.NewReader(content)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err, name)
			start, ok := token.(xml.StartElement)
			if !ok || start.Name.Local != "TEST" {
				continue
			}
			var c conformanceCase
			require.NoError(t, d.DecodeElement(&c, &start), name)
			c.document, ok = files[path.Join(path.Dir(name), c.URI)]
			require.True(t, ok, "%s: there is no %s", name, c.URI)
			if c.Output != "" {
				c.canonical = files[path.Join(path.Dir(name), c.Output)]
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b conformanceCase) int { return strings.Compare(a.ID+a.URI, b.ID+b.URI) })
	return all
}

func TestW3CSuite(t *testing.T) {
	testenv.SkipUnderRace(t)
	type tally struct {
		rejected, rejectedDTD int // ill-formed
		accepted, acceptedDTD int // well-formed, whether valid or not
		external              int // likewise, with entities that are not read
		canonical             int // of accepted and acceptedDTD, those whose content was compared
	}
	var right tally
	for _, c := range conformanceSuite(t) {
		if !c.applies() {
			continue
		}
		canonical, err := canonicalForm(c.document, Options{URI: c.URI, Misc: true, SkipUnread: true, Limits: Limits{Name: 64 << 10}})
		dtd := c.hasDTD()
		switch {
		case c.Type == "error": // a processor may report these or not
		case c.Type == "not-wf" && c.external(): // the fault may be in a part that is not read
		case c.Type == "not-wf":
			var syntax *SyntaxError
			if assert.True(t, errors.As(err, &syntax), "%s (%s) is accepted: %v", c.ID, c.URI, err) {
				assert.Positive(t, syntax.Line)
				assert.Positive(t, syntax.Column)
				if dtd {
					right.rejectedDTD++
				} else {
					right.rejected++
				}
			}
		case !assert.NoError(t, err, c.ID):
		case c.external():
			right.external++
		default:
			if dtd {
				right.acceptedDTD++
			} else {
				right.accepted++
			}
			if c.canonical != nil {
				want := withoutDTD(c.canonical)
				if assert.Equal(t, want, canonical, "%s (%s)", c.ID, c.URI) {
					right.canonical++
				}
			}
		}
	}
	t.Logf("%d and %d ill-formed cases rejected, %d and %d well-formed cases accepted (without and with DTD)", right.rejected, right.rejectedDTD, right.accepted, right.acceptedDTD)
	assert.Equal(t, tally{
		rejected: 243, rejectedDTD: 708,
		accepted: 70, acceptedDTD: 697,
		external: 181, canonical: 261,
	}, right)
}

// withoutDTD leaves the declarations of notations out of a canonical form.
func withoutDTD(canonical []byte) string {
	text := string(canonical)
	if begin := strings.Index(text, "<!DOCTYPE"); begin >= 0 {
		end := strings.Index(text, "]>\n")
		text = text[:begin] + text[end+len("]>\n"):]
	}
	return text
}

// canonicalForm returns the second canonical form of a document, as the suite
// describes it, without notations.
func canonicalForm(document []byte, o Options) (string, error) {
	var out strings.Builder
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\t", "&#9;", "\n", "&#10;", "\r", "&#13;")
	for s := NewScanner(bytes.NewReader(document), o); ; {
		kind, err := s.Next()
		if err == io.EOF {
			return out.String(), nil
		}
		if err != nil {
			return "", err
		}
		raw := func(n Name) string {
			if n.Prefix != "" {
				return n.Prefix + ":" + n.Local
			}
			return n.Local
		}
		switch kind {
		case StartElement:
			var attrs []string
			for _, a := range s.Attrs() {
				attrs = append(attrs, " "+raw(a.Name)+`="`+escape.Replace(string(a.Value))+`"`)
			}
			for d := range s.Declarations {
				attrs = append(attrs, " "+strings.TrimSuffix("xmlns:"+d.Prefix, ":")+`="`+escape.Replace(d.Space)+`"`)
			}
			slices.Sort(attrs)
			out.WriteString("<" + raw(s.Name()) + strings.Join(attrs, "") + ">")
		case EndElement:
			out.WriteString("</" + raw(s.Name()) + ">")
		case Text:
			out.WriteString(escape.Replace(string(s.Text())))
		case ProcInst:
			out.WriteString("<?" + s.Target() + " " + string(s.Text()) + "?>")
		}
	}
}
