package folder_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The example documents of Atom-PMH, each with the outcome that its text gives.

const (
	alpha = "urn:uuid:177d5415-c443-410f-a5b6-44bf8433594f"
	beta  = "urn:uuid:e7aca47e-76c5-4648-948b-583ffdaafa0d"
	gamma = "urn:uuid:fca64ec1-4984-4d34-8f02-f14a58ec5e78"
	delta = "urn:uuid:4cee3cd0-a7a7-42c8-a6ee-74df0bd04cc4"
	test1 = "urn:uuid:0b116a23-9bfc-49b1-97f7-90fb012c60a4"
	test2 = "urn:uuid:24870a63-01ae-4fed-878b-2ec8d498cfd0"
)

func example(t testing.TB, name string) string {
	b, err := os.ReadFile(filepath.Join("testdata", "atompmh", name+".xml"))
	require.NoError(t, err)
	return string(b)
}

// exampleSite has the addresses to which the examples lead.
func exampleSite(t *testing.T) *site {
	s := newSite(t)
	s.set("/entry/0001", example(t, "example-1-entry"))
	for _, path := range []string{"0002", "0003", "0003.atom", "0004", "0004.atom", "0004.rifcs", "0004.rdf", "0004.html", "t1.atom-rdc", "t2.atom-rdc", "one", "two", "three", "four"} {
		s.set("/entry/"+path, "<entry>"+path+"</entry>")
	}
	return s
}

// example1 publishes the archived feed of example 1.
func (s *site) example1(t *testing.T) {
	s.set("/feed", example(t, "example-1-subscription"))
	s.set("/archived/2012/10/31", example(t, "example-1-archive-1"))
	s.set("/archived/2012/06/30", example(t, "example-1-archive-2"))
	s.set("/archived/2011/12/31", example(t, "example-1-archive-3"))
}

func page(paths ...string) map[string]string {
	records := map[string]string{}
	for i := 0; i < len(paths); i += 2 {
		records[paths[i]] = "<entry>" + paths[i+1] + "</entry>"
	}
	return records
}

func ofExample1(t *testing.T) map[string]string {
	records := page(beta, "0002", gamma, "0003.atom", delta, "0004")
	records[alpha] = example(t, "example-1-entry")
	return records
}

// Example 3 names the representations of Gamma and Delta in another order.
func ofExample3(t *testing.T) map[string]string {
	records := page(beta, "0002", gamma, "0003", delta, "0004.atom")
	records[alpha] = example(t, "example-1-entry")
	return records
}

func TestGeneralExamples(t *testing.T) {
	s := exampleSite(t)
	c := s.copy()
	s.set("/feed", example(t, "general-entries"))
	require.Equal(t, 2, c.round().New)
	c.equals(page(test1, "t1.atom-rdc", test2, "t2.atom-rdc"))

	// "If the second metadata record is modified and the first metadata record deleted"
	s.set("/feed", example(t, "general-update-and-delete"))
	s.set("/entry/t2.atom-rdc", "modified")
	s.remove("/entry/t1.atom-rdc")
	s.Seen()
	r := c.round()
	require.Equal(t, []int{0, 1, 1}, []int{r.New, r.Changed, r.Removed})
	c.equals(map[string]string{test2: "modified"})
	require.Equal(t, []string{"/feed", "/entry/t2.atom-rdc"}, s.Seen(), "the historical entries are passed over")

	// "The previous example showing a deleted metadata record can be represented as"
	other := s.copy()
	s.set("/feed", example(t, "general-complete"))
	other.round()
	other.equals(map[string]string{test2: "modified"})
	c.round()
	c.equals(map[string]string{test2: "modified"})
}

func TestGeneralExampleOfDeletionByAbsence(t *testing.T) {
	s := exampleSite(t)
	c := s.copy()
	s.set("/feed", example(t, "general-entries"))
	c.round()
	s.set("/feed", example(t, "general-complete"))
	r := c.round()
	require.Equal(t, []int{0, 0, 1, 1}, []int{r.New, r.Changed, r.Removed, r.Held}, "changed resources have the same content")
	c.equals(page(test2, "t2.atom-rdc"))
}

func TestGeneralExampleOfArchivedFeeds(t *testing.T) {
	s := exampleSite(t)
	for path, name := range map[string]string{"/feed": "subscription", "/feed/L99": "L99", "/feed/L98": "L98", "/feed/L97": "oldest"} {
		s.set(path, example(t, "general-archived-"+name))
	}
	c := s.copy()
	require.Equal(t, 4, c.round().Documents)
	at := "http://example.org/record/"
	c.equals(page(at+"one", "one", at+"two", "two", at+"three", "three", at+"four", "four"))
}

func TestExample1(t *testing.T) {
	s := exampleSite(t)
	s.example1(t)
	c := s.copy()
	r := c.round()
	require.Equal(t, []int{4, 0, 0, 4}, []int{r.New, r.Changed, r.Removed, r.Documents})
	c.equals(ofExample1(t))
	require.Equal(t, []string{
		"Alpha-data-collection-" + sha(alpha)[:12] + ".atom",
		"Beta-data-collection-" + sha(beta)[:12] + ".atom",
		"Delta-data-collection-" + sha(delta)[:12] + ".atom",
		"Gamma-data-collection-" + sha(gamma)[:12] + ".atom",
	}, slices.Sorted(maps.Keys(c.files())))

	s.Seen()
	require.Zero(t, c.round().Documents)
	require.Equal(t, []string{"/feed"}, s.Seen(), "nothing has changed")
}

func TestExample2AfterExample1(t *testing.T) {
	s := exampleSite(t)
	s.example1(t)
	c := s.copy()
	c.round()

	s.set("/archived/2012/11/01", example(t, "example-1-subscription"))
	s.set("/feed", example(t, "example-2-subscription"))
	s.remove("/entry/0001")
	s.Seen()
	r := c.round()
	require.Equal(t, []int{0, 0, 1, 3}, []int{r.New, r.Changed, r.Removed, r.Held})
	want := ofExample1(t)
	delete(want, alpha)
	c.equals(want)
	require.Equal(t, []string{"/feed", "/archived/2012/11/01", "/archived/2012/10/31", "/feed"}, s.Seen(), "the second archive document is handled; the first is asked for once more")

	other := s.copy() // who begins now sees the same
	require.Empty(t, other.round().Gone)
	other.equals(want)
}

func TestExamples3And4(t *testing.T) {
	s := exampleSite(t)
	s.set("/feed", example(t, "example-3-complete"))
	c := s.copy()
	require.Equal(t, 4, c.round().New)
	c.equals(ofExample3(t))

	s.set("/feed", example(t, "example-4-complete"))
	r := c.round()
	require.Equal(t, []int{0, 0, 1}, []int{r.New, r.Changed, r.Removed})
	want := ofExample3(t)
	delete(want, alpha)
	c.equals(want)
}

func TestExample3InPreferredFormats(t *testing.T) {
	s := exampleSite(t)
	s.set("/feed", example(t, "example-3-complete"))
	c := s.copy("application/rifcs+xml", "APPLICATION/RDF+XML")
	r := c.round()
	require.Equal(t, []int{1, 3}, []int{r.New, r.Unwanted})
	c.equals(page(delta, "0004.rifcs"))
	require.Contains(t, c.files(), "Delta-data-collection-"+sha(delta)[:12]+".rifcs.xml")

	s.Seen()
	s.set("/feed", example(t, "example-3-complete")+"<!-- so that it is not the same -->")
	c.round()
	require.Equal(t, []string{"/feed"}, s.Seen(), "unwanted records are not read again")

	c.Formats = []string{"text/turtle", "application/rdf+xml", "application/atom+xml"}
	r = c.round()
	require.Equal(t, []int{3, 1, 0}, []int{r.New, r.Changed, r.Unwanted})
	want := ofExample3(t)
	want[delta] = "<entry>0004.rdf</entry>"
	c.equals(want)
}

func TestExample5(t *testing.T) {
	s := exampleSite(t)
	s.set("/feed", example(t, "example-5"))
	c := s.copy()
	require.Equal(t, 1, c.round().New)
	c.equals(page(beta, "0002"))
	require.Equal(t, time.Date(2012, 11, 2, 7, 30, 0, 0, time.UTC), c.state().Records[beta].Updated, "that of the active entry")
	require.Equal(t, 1, slices.Index(s.Seen(), "/entry/0002"), "and it alone is fetched")
}

// The two forms of a feed change into one another: an archived one (example 1) and a
// complete one (examples 3 and 4), in which a record is absent.
func TestFormsChangeIntoOneAnother(t *testing.T) {
	s := exampleSite(t)
	s.example1(t)
	c := s.copy()
	c.round()

	s.set("/feed", example(t, "example-4-complete"))
	r := c.round()
	require.Equal(t, 1, r.Removed)
	want := ofExample3(t)
	delete(want, alpha)
	// Delta has the same time in both, so it is the same version, in whatever form.
	want[delta] = "<entry>0004</entry>"
	c.equals(want)

	s.set("/feed", example(t, "example-3-complete"))
	require.Equal(t, 1, c.round().New)
	want[alpha] = example(t, "example-1-entry")
	c.equals(want)

	s.example1(t)
	r = c.round()
	require.Contains(t, r.Reason, "complete")
	want[gamma] = "<entry>0003.atom</entry>" // of another time, so another version
	c.equals(want)
}
