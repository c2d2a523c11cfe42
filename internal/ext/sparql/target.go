// Package sparql is the extension that keeps graphs in SPARQL 1.1 stores in step with collections and subscriptions.
// docs/targets.md describes it.
package sparql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
)

// Target is a graph in a store that is kept in step with a source. It is the data of a [store.Consumer].
type Target struct {
	Name   string `json:"name"`
	Source string `json:"source"` // the name of a collection or a subscription

	Update string `json:"update"` // URL
	Query  string `json:"query"`  // URL
	Graph  string `json:"graph"`  // IRI
	// Files with credentials: "user: password", or a bearer token.
	PasswordFile string `json:"passwordFile,omitempty"`
	TokenFile    string `json:"tokenFile,omitempty"`
	// Taken states that the whole graph belongs to the source: it was empty, or is taken over.
	Taken bool `json:"taken,omitempty"`

	// Mark is the last known mark of the store. Next is the mark that the target is changing to; nil if none. The store
	// may have it already.
	Mark *Mark  `json:"mark,omitempty"`
	Next *Mark  `json:"next,omitempty"`
	Past []Mark `json:"past,omitempty"` // former ones, the last ones at the end

	Statements int       `json:"statements"`         // of the graph, when it was counted last
	InStep     time.Time `json:"inStep,omitzero"`    // when the store had all that the source had
	Verified   time.Time `json:"verified,omitzero"`  // when the whole graph was compared last
	Error      string    `json:"error,omitempty"`    // of the last try
	ErrorAt    time.Time `json:"errorAt,omitzero"`   //
	Refused    []string  `json:"refused,omitempty"`  // statements that the store does not take
	Changed    int       `json:"changed,omitempty"`  // values that the store keeps as others, at the last comparison
	HeldBack   int       `json:"heldBack,omitempty"` // statements that a comparison would delete, and may not
}

// Mark identifies the state of a graph; the store keeps it.
type Mark struct {
	History string `json:"history"`
	Commit  uint64 `json:"commit"`
	// Nonce differs for each mark that is written. So a store, or a node, that was restored is found out, and one that
	// another node writes to.
	Nonce string `json:"nonce"`

	// Source and Generation identify the source of the commit in this node's store.
	Source     uint32 `json:"source"`
	Generation uint32 `json:"generation"`
}

// String returns the text that the store has.
func (m *Mark) String() string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%s %d %s", m.History, m.Commit, m.Nonce)
}

// prefix begins the names of the consumers that targets are.
const prefix = "sparql/"

// validate returns an error for an invalid target.
func (t *Target) validate() error {
	for flag, value := range map[string]string{"--of": t.Source, "--sparql-update": t.Update, "--graph": t.Graph} {
		if value == "" {
			return fmt.Errorf("%s is missing: \"target add --help\" has an example", flag)
		}
	}
	if t.Name == "" || strings.ContainsAny(t.Name, " \t\r\n/") {
		return fmt.Errorf("%q cannot name a target: give one word without a slash", t.Name)
	}
	for flag, at := range map[string]string{"--sparql-update": t.Update, "--sparql-query": t.Query} {
		u, err := url.Parse(at)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return fmt.Errorf("%s: %q is no http or https URL: write it as in http://127.0.0.1:3030/skos/update", flag, at)
		case u.User != nil:
			return fmt.Errorf("%s: the URL on %s has a name or a password in it: put \"user: password\" into a file instead "+
				"(--password-file)", flag, u.Host)
		}
	}
	g, err := url.Parse(t.Graph)
	if err != nil || !iri.IsAbsolute(t.Graph) || strings.ContainsAny(t.Graph, iri.Refused) ||
		strings.Count(t.Graph, "#") > 1 || g.Opaque == "" && g.Host == "" && g.Path == "" {
		return fmt.Errorf("--graph: %q is no absolute IRI: write it as in http://example.org/graph/skos", t.Graph)
	}
	if t.PasswordFile != "" && t.TokenFile != "" {
		return errors.New("--password-file and --token-file exclude each other: give one")
	}
	return nil
}

// targetOf returns the target that a consumer is; ok is false for others.
func targetOf(c *store.Consumer) (t *Target, ok bool, err error) {
	if !strings.HasPrefix(c.Name, prefix) {
		return nil, false, nil
	}
	t = &Target{}
	if err := json.Unmarshal(c.Kept, t); err != nil {
		return nil, true, fmt.Errorf("target %s: what is kept of it cannot be read: %w", c.Name[len(prefix):], err)
	}
	t.Name, t.Source = strings.TrimPrefix(c.Name, prefix), c.Source
	return t, true, nil
}

// targets returns all targets by name.
func targets(ctx context.Context, db *store.DB) (all []*Target, err error) {
	found, err := db.Consumers(ctx)
	if err != nil {
		return nil, err
	}
	for i := range found {
		t, ok, err := targetOf(&found[i])
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, t)
		}
	}
	return all, nil
}

// load reads the state of the target.
func (k *keeper) load(ctx context.Context) error {
	found, err := k.db.Consumer(ctx, prefix+k.Name)
	if errors.Is(err, store.ErrNotFound) {
		return &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("there is no target %q: \"target list\" lists them", k.Name)}
	}
	if err != nil {
		return err
	}
	t, _, err := targetOf(found)
	if err == nil {
		k.Target = t
	}
	return err
}

// save writes the state of a target, so that the store keeps the changes of its source since the mark.
func (k *keeper) save(ctx context.Context) error {
	kept, err := json.Marshal(k.Target)
	if err != nil {
		return err
	}
	return k.db.ChangeConsumer(ctx, prefix+k.Name, func(c *store.Consumer) {
		c.Kept, c.Number = kept, 0
		if m := k.Mark; m != nil {
			c.Number, c.Generation, c.Commit = m.Source, m.Generation, m.Commit
		}
	})
}
