package nodepages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// Run executes a command of tmshare-client on the data folder and returns its output. If the command fails, the error
// is a [*CommandError].
type Run func(ctx context.Context, args ...string) ([]byte, error)

// CommandError is the error message of a failed command.
type CommandError struct{ Text string }

func (e *CommandError) Error() string { return e.Text }

// folder is a data folder by means of commands: so it does not matter which process holds it.
type folder struct {
	run     Run
	working chan struct{} // holds one element for each running command
}

// maxCommands is the number of commands that run at the same time.
const maxCommands = 4

// do executes a command. A failed one is shown with a status.
func (f *folder) do(ctx context.Context, status int, args ...string) ([]byte, error) {
	select {
	case f.working <- struct{}{}:
		defer func() { <-f.working }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out, err := f.run(ctx, args...)
	var failed *CommandError
	if errors.As(err, &failed) {
		return nil, &Problem{Status: status, Text: texts.Text(failed.Text)}
	}
	return out, err
}

// read executes a command that prints JSON.
func (f *folder) read(ctx context.Context, status int, value any, args ...string) error {
	out, err := f.do(ctx, status, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, value); err != nil {
		return fmt.Errorf("%q has printed what cannot be read: %w", args[0], err)
	}
	return nil
}

// Node implements [Source].
func (f *folder) Node(ctx context.Context) (*status.Node, error) {
	var n status.Node
	return &n, f.read(ctx, http.StatusServiceUnavailable, &n, "status", "--node", "--history", "--json")
}

// Subscription implements [Source].
func (f *folder) Subscription(ctx context.Context, name string) (*status.Status, error) {
	var list []status.Status
	err := f.read(ctx, http.StatusServiceUnavailable, &list, "status", "--history", "--json", "--", name)
	if err != nil {
		if names, unknown := f.names(ctx); unknown == nil && !slices.Contains(names, name) {
			return nil, nil
		}
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("\"status %s\" has printed %d subscriptions", name, len(list))
	}
	return &list[0], nil
}

// Log implements [Source].
func (f *folder) Log(ctx context.Context, name string, most int) (all []store.Activity, err error) {
	return all, f.read(ctx, http.StatusServiceUnavailable, &all, "log", "--json", "--limit="+strconv.Itoa(most), "--",
		name)
}

// Seen implements [Source]: rounds are done by other processes.
func (f *folder) Seen(string) *status.Seen { return nil }

// Retry implements [Actions].
func (f *folder) Retry(ctx context.Context, name string, topics ...string) error {
	_, err := f.do(ctx, http.StatusConflict, append([]string{"retry", "--", name}, topics...)...)
	return err
}

// Forget implements [Actions].
func (f *folder) Forget(ctx context.Context, name string, topics ...string) error {
	args := []string{"forget", "--", name}
	if len(topics) == 0 {
		args = []string{"forget", "--all", "--", name}
	}
	_, err := f.do(ctx, http.StatusConflict, append(args, topics...)...)
	return err
}

// names returns the names of the subscriptions.
func (f *folder) names(ctx context.Context) (names []string, err error) {
	var list []struct{ Name string }
	err = f.read(ctx, http.StatusServiceUnavailable, &list, "status", "--json")
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names, err
}

// topic returns a topic of the merged view, with titles for a reader of some languages.
func (f *folder) topic(ctx context.Context, si string, instances bool, languages titles.Languages) (*merged.Topic,
	error) {
	args := []string{"topic", "--json"}
	if len(languages) > 0 {
		args = append(args, "--lang="+languages.String())
	}
	if instances {
		args = append(args, "--instances")
	}
	var t merged.Topic
	return &t, f.read(ctx, http.StatusNotFound, &t, append(args, "--", si)...)
}

// claim is the claim that a form names, to be rejected or shown again.
type claim struct {
	Kind            rejections.Kind
	Topic           string
	Value           string
	Of              string // the value of the name that a variant is of
	Type, Datatype  string
	Scope           []string
	RoleTypes, Play []string // of an association
	Source          string
}

// reject hides a claim of a source, or shows it again.
func (f *folder) reject(ctx context.Context, c *claim, again bool, reason string) error {
	args := []string{"edit", "reject", string(c.Kind), "--source=" + c.Source}
	if again {
		args[1] = "unreject"
	} else if reason != "" {
		args = append(args, "--reason="+reason)
	}
	if c.Type != "" && (c.Kind == rejections.Name || c.Kind == rejections.Occurrence || c.Kind == rejections.Association) {
		args = append(args, "--type="+c.Type)
	}
	if c.Datatype != "" && (c.Kind == rejections.Occurrence || c.Kind == rejections.Variant) {
		args = append(args, "--datatype="+c.Datatype)
	}
	if c.Kind != rejections.Identifier && c.Kind != rejections.Locator {
		for _, theme := range c.Scope {
			args = append(args, "--scope="+theme)
		}
	}
	args = append(args, "--")
	switch c.Kind {
	case rejections.Variant:
		args = append(args, c.Topic, c.Of, c.Value)
	case rejections.Association:
		for i, role := range c.RoleTypes {
			args = append(args, role+"="+c.Play[i])
		}
	default:
		args = append(args, c.Topic, c.Value)
	}
	_, err := f.do(ctx, http.StatusConflict, args...)
	return err
}

// rejectable are the kinds of claims that forms name.
var rejectable = []rejections.Kind{
	rejections.Name, rejections.Variant, rejections.Occurrence, rejections.Association, rejections.Identifier,
	rejections.Locator,
}

// defaultType is the type of names without an explicit type.
const defaultType = string(tmdm.PSIDefaultNameType)
