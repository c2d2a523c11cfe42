// Package triplestore is a SPARQL store for tests: it accepts the requests of targets, and simulates faults of stores.
package triplestore

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Store is a SPARQL store. Its fields are set between requests: see [Store.Keep].
type Store struct {
	URL string

	mu     sync.Mutex
	Graphs map[string]map[string]bool // by IRI: "s p o"
	Fault  func(update bool) Fault
	Refuse func(triple string) bool   // rejected triples
	Most   int                        // triples of a request; 0: any number
	Cut    int                        // rows of an answer; 0: all
	Value  func(triple string) string // of two triples with the same value it keeps the first; nil: it keeps all
	// Unfiltered makes the store ignore filters.
	Unfiltered bool
	Count      int // requests
	Size       int // bytes of updates
}

// Fault is a fault in answering a request.
type Fault int

// The faults.
const (
	None     Fault = iota
	Away           // it is not executed: 503
	Broken         // it is not executed, and the connection is cut
	Lost           // it is executed, and the connection is cut
	Pretends       // it is answered as if it was executed
)

// New starts a store at an address; "": at a free one. It ends with the test.
func New(t testing.TB, address string) *Store {
	s := &Store{Graphs: map[string]map[string]bool{}}
	server := httptest.NewUnstartedServer(s)
	if address != "" {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		server.Listener.Close()
		server.Listener = l
	}
	server.Start()
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Keep runs f while no request does.
func (s *Store) Keep(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Copied returns the content of the store.
func (s *Store) Copied() map[string]map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]map[string]bool{}
	for g, triples := range s.Graphs {
		all[g] = maps.Clone(triples)
	}
	return all
}

// Graph returns the triples of a graph, by its IRI in angle brackets.
func (s *Store) Graph(g string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.Graphs[g]))
}

func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Count++
	body, _ := io.ReadAll(r.Body)
	isUpdate := strings.HasPrefix(r.Header.Get("Content-Type"), "application/sparql-update")
	what := None
	if s.Fault != nil {
		what = s.Fault(isUpdate)
	}
	switch what {
	case Away:
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	case Broken:
		panic(http.ErrAbortHandler)
	case Pretends:
		if isUpdate {
			return
		}
	}
	if !isUpdate {
		values, _ := url.ParseQuery(string(body))
		s.query(w, values.Get("query"))
		return
	}
	s.Size += len(body)
	if err := s.update(string(body)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if what == Lost {
		panic(http.ErrAbortHandler)
	}
}

var token = regexp.MustCompile(
	`<[^>]*>|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?|\?\w+|[A-Za-z]+|[{}.;()&|!=<>,]+`)

// triples are in a graph.
type triples map[string][]string

// group reads a group of graphs after its first brace, and returns the remaining tokens.
func group(tokens []string) (all triples, rest []string) {
	all = triples{}
	for tokens = tokens[1:]; tokens[0] == "GRAPH"; tokens = tokens[1:] {
		g := tokens[1]
		tokens = tokens[3:]
		for tokens[0] != "}" {
			all[g] = append(all[g], strings.Join(tokens[:3], " "))
			if tokens = tokens[3:]; tokens[0] == "." {
				tokens = tokens[1:]
			}
		}
	}
	return all, tokens[1:]
}

// update executes the operations of a request, one after the other, until the first that fails.
func (s *Store) update(text string) error {
	for operation := range strings.SplitSeq(text, " ;\n") {
		if err := s.operate(operation); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) operate(text string) error {
	var removed, added, where triples
	tokens := token.FindAllString(text, -1)
	switch strings.Join(tokens[:2], " ") {
	case "CLEAR SILENT":
		delete(s.Graphs, tokens[3])
		return nil
	case "DELETE WHERE":
		where, _ = group(tokens[2:])
		return s.removeMatching(where)
	case "DELETE DATA":
		removed, _ = group(tokens[2:])
	case "INSERT DATA":
		added, _ = group(tokens[2:])
	default:
		removed, tokens = group(tokens[1:])
		added, tokens = group(tokens[1:])
		if strings.Contains(text, "isBlank") {
			return nil
		}
		where, _ = group(tokens[1:])
	}
	n := 0
	for _, all := range []triples{removed, added} {
		for _, list := range all {
			n += len(list)
			if s.Refuse != nil && slices.ContainsFunc(list, s.Refuse) {
				return fmt.Errorf("a statement is not taken")
			}
		}
	}
	if s.Most > 0 && n > s.Most {
		return fmt.Errorf("%d statements are too many", n)
	}
	for g, list := range where {
		for _, one := range list {
			if !s.Graphs[g][one] {
				return nil
			}
		}
	}
	for g, list := range removed {
		for _, one := range list {
			delete(s.Graphs[g], s.kept(g, one))
		}
	}
	for g, list := range added {
		if s.Graphs[g] == nil {
			s.Graphs[g] = map[string]bool{}
		}
		for _, one := range list {
			s.Graphs[g][s.kept(g, one)] = true
		}
	}
	return nil
}

// kept returns the triple that the store has in place of one.
func (s *Store) kept(g, one string) string {
	if s.Value == nil || s.Graphs[g][one] {
		return one
	}
	for other := range s.Graphs[g] {
		if s.Value(other) == s.Value(one) {
			return other
		}
	}
	return one
}

func (s *Store) removeMatching(where triples) error {
	for g, list := range where {
		for _, pattern := range list {
			begin, _, _ := strings.Cut(pattern, "?")
			maps.DeleteFunc(s.Graphs[g], func(one string, _ bool) bool { return strings.HasPrefix(one, begin) })
		}
	}
	return nil
}

var inGraph = regexp.MustCompile(`GRAPH (<[^>]*>) \{ (.*)\} \}$`)

func (s *Store) query(w http.ResponseWriter, text string) {
	parts := inGraph.FindStringSubmatch(text)
	if parts == nil {
		http.Error(w, "not understood: "+text, http.StatusBadRequest)
		return
	}
	triples, pattern := s.Graphs[parts[1]], parts[2]
	if strings.HasPrefix(text, "SELECT ?m") {
		begin, _, _ := strings.Cut(pattern, "?")
		var found []string
		for one := range triples {
			if value, ok := strings.CutPrefix(one, begin); ok {
				found = append(found, fmt.Sprintf(`{"m": {"type": "literal", "value": %s}}`, value))
			}
		}
		fmt.Fprintf(w, `{"head": {"vars": ["m"]}, "results": {"bindings": [%s]}}`, strings.Join(found, ","))
		return
	}
	_, filter, _ := strings.Cut(pattern, "FILTER(")
	if s.Unfiltered && !strings.Contains(filter, "isBlank") {
		filter = ""
	}
	var found []string
	values := ofSubjects.FindStringSubmatch(text)
	for one := range triples {
		if values != nil && !s.Unfiltered && !slices.Contains(strings.Fields(values[1]), token.FindString(one)) {
			continue
		}
		if !strings.Contains(filter, "isBlank") && passes(filter, one) {
			found = append(found, one)
		}
	}
	slices.Sort(found)
	if strings.HasPrefix(text, "SELECT (COUNT") {
		fmt.Fprintf(w, `{"head": {"vars": ["n"]}, "results": {"bindings": [{"n": {"value": "%d"}}]}}`, len(found))
		return
	}
	if s.Cut > 0 && len(found) > s.Cut {
		found = found[:s.Cut]
	}
	w.Header().Set("Content-Type", "application/n-triples")
	for _, one := range found {
		fmt.Fprintf(w, "%s .\n", one)
	}
}

// ofSubjects finds the subjects that a query is about alone.
var ofSubjects = regexp.MustCompile(`VALUES \?s \{([^}]*)\}`)

var comparison = regexp.MustCompile(`STR\(\?(\w)\) (>=|>) "([^"]*)"`)

// passes evaluates the filter of a range: triples from one place, inclusive, to another, exclusive.
func passes(filter, triple string) bool {
	if filter == "" {
		return true
	}
	parts := token.FindAllString(triple, 3)
	object := ""
	if strings.HasPrefix(parts[2], "<") {
		object = strings.Trim(parts[2], "<>")
	}
	has := map[string]string{"s": strings.Trim(parts[0], "<>"), "p": strings.Trim(parts[1], "<>"), "o": object}
	reaches := func(condition string) bool {
		order := 0
		for _, m := range comparison.FindAllStringSubmatch(condition, -1) {
			order = cmp.Or(order, strings.Compare(has[m[1]], m[3]))
		}
		return order >= 0
	}
	for _, condition := range strings.Split(filter, "IF(")[1:] {
		if reaches(condition) == strings.Contains(condition, ", false, true)") {
			return false
		}
	}
	return true
}
