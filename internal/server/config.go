package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/resources"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// Store is what the server needs of the store: reading, publishing, and what is
// to be done now and then.
type Store interface {
	Reader
	Publisher
	Keeper
}

// Reader reads what is published.
type Reader interface {
	Collections() ([]store.Collection, error)
	View(name string, f func(*store.View) error) error
	Latest(name string) (*store.Latest, error)
	Sizes() (store.Sizes, error)
	Dir() string
}

// Publisher changes what is published.
type Publisher interface {
	CreateCollection(ctx context.Context, c store.Collection, src fragment.Source, progress func(records int)) (*store.Collection, error)
	FillCollection(ctx context.Context, name string, src fragment.Source, checks ...func(*store.Collection) error) (*store.Collection, error)
	Publish(ctx context.Context, name string, decide func(store.Collection, merge.State) (*fragment.Change, error)) (*store.Collection, error)
	ChangeSettings(name string, change func(*store.Settings) error, checks ...func(*store.Collection) error) (*store.Collection, error)
	DeleteCollection(name string, checks ...func(*store.Collection) error) error
}

// Keeper takes snapshots, gives up history, and cuts it into change lists.
type Keeper interface {
	TakeSnapshot(ctx context.Context, name string, keep int) (*store.Snapshot, error)
	Prune(ctx context.Context, name string, keep store.Retention) (entries uint64, err error)
	Restate(ctx context.Context, name string) (records int, err error)
	KeepFragments(ctx context.Context, name string) (records int, err error)
	CutChanges(name string, after uint64, at time.Time, cut store.Cut, checks ...func(*store.Collection) error) (*store.Collection, error)
	DropChangeLists(name string, upTo uint64) error
	Room() error
}

// Config configures a Server. Store and BaseURL are required; zero values of
// the others mean the defaults.
type Config struct {
	Store Store

	// BaseURL is the public address of the server, without a slash at the end.
	// All links are made from it, never from the Host of a request.
	BaseURL string

	// Tokens are the bearer tokens that may write. Without any, requests may
	// write that come from this machine, to a server bound to a loopback
	// address (OnLoopback), and not through a browser or a proxy.
	Tokens     []string
	OnLoopback bool

	// ReadTokens are the bearer tokens that may read a collection, by its name.
	// A collection without any is for all.
	ReadTokens map[string][]string

	Patience         time.Duration // how long a client may take to send or take 64 KiB; default 30 seconds
	MaxUploads       int           // maps that are read at a time; default 2
	MetricsElsewhere bool          // there is no /metrics here: MetricsHandler is served at another address

	Lenient      bool       // read XTM 1.0 leniently
	MaxBody      int64      // bytes of a request body, unpacked; default 1 GiB
	Limits       xtm.Limits // on documents that are read
	DocumentSize int        // entries of an archive document, for new collections; default 100

	// Of collections that have no settings of their own for it.
	SnapshotEvery int           // changes after which a new snapshot is taken; default 1,000
	SnapshotAfter time.Duration // after which a change gets into a snapshot; default 24 hours
	SnapshotsKept int           // default 3
	KeepEntries   uint64        // how many of the last entries are kept; default all
	KeepFor       time.Duration // how long entries are kept; default for ever

	ChangesPerList  int           // changes after which a change list of ResourceSync is closed; default 1,000
	ChangeListAfter time.Duration // age of its first change at which it is; default 24 hours
	ResourceSizes   resources.Sizes

	CheckEvery time.Duration // how often is looked for snapshots that are due; default a minute
	PruneEvery time.Duration // how often history that need not be kept is given up; default an hour
	WatchEvery time.Duration // how often is looked for changes of files that are watched; default a second

	Logger *slog.Logger     // default slog.Default()
	Now    func() time.Time // default time.Now
}

// Validate checks c and fills in the defaults.
func (c *Config) Validate() error {
	if c.Store == nil {
		return errors.New("server: Store is missing")
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(c.BaseURL, "?#") {
		return fmt.Errorf("server: BaseURL %q is not an absolute http or https URL without query and fragment", c.BaseURL)
	}
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	all := slices.Clone(c.Tokens)
	for collection, some := range c.ReadTokens {
		if err := ValidateName(collection); err != nil {
			return fmt.Errorf("server: read tokens: %w", err)
		}
		if len(some) == 0 {
			return fmt.Errorf("server: no read tokens given for %s, which would be open to all", collection)
		}
		all = append(all, some...)
	}
	for _, t := range all {
		if len(t) < minToken {
			return fmt.Errorf("server: a token has %d characters, at least %d are needed", len(t), minToken)
		}
	}
	for name, n := range map[string]int{"SnapshotEvery": c.SnapshotEvery, "SnapshotsKept": c.SnapshotsKept, "DocumentSize": c.DocumentSize, "MaxUploads": c.MaxUploads, "ChangesPerList": c.ChangesPerList} {
		if n < 0 {
			return fmt.Errorf("server: %s is negative", name)
		}
	}
	for name, d := range map[string]time.Duration{
		"SnapshotAfter": c.SnapshotAfter, "KeepFor": c.KeepFor, "ChangeListAfter": c.ChangeListAfter, "CheckEvery": c.CheckEvery, "PruneEvery": c.PruneEvery, "WatchEvery": c.WatchEvery, "Patience": c.Patience,
	} {
		if d < 0 {
			return fmt.Errorf("server: %s is negative", name)
		}
	}
	if c.MaxBody < 0 {
		return errors.New("server: MaxBody is negative")
	}
	setDefault(&c.MaxBody, 1<<30)
	setDefault(&c.Patience, 30*time.Second)
	setDefault(&c.MaxUploads, 2)
	setDefault(&c.SnapshotEvery, 1000)
	setDefault(&c.SnapshotAfter, 24*time.Hour)
	setDefault(&c.ChangesPerList, 1000)
	setDefault(&c.ChangeListAfter, 24*time.Hour)
	setDefault(&c.CheckEvery, time.Minute)
	setDefault(&c.PruneEvery, time.Hour)
	setDefault(&c.WatchEvery, time.Second)
	setDefault(&c.SnapshotsKept, 3)
	setDefault(&c.DocumentSize, 100)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// minToken is the least length of a token: shorter ones can be guessed.
const minToken = 16

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// ReadTokens reads tokens, one on each line; empty lines and lines that begin
// with # are passed over.
func ReadTokens(r io.Reader) ([]string, error) {
	b, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return nil, err
	}
	var tokens []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			tokens = append(tokens, line)
		}
	}
	if len(tokens) == 0 {
		return nil, errors.New("has no token in it")
	}
	return tokens, nil
}
