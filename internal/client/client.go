package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/locks"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/xtm"
)

// Store has the methods of a store that the client needs.
type Store interface {
	Subscriptions(ctx context.Context) ([]store.Subscription, error)
	AddSubscription(context.Context, store.Subscription) error
	MoveSubscription(ctx context.Context, name string, change func(*store.Subscription)) error
	UpdateSubscription(ctx context.Context, name string, change func(*store.Subscription)) error
	RemoveSubscription(ctx context.Context, name string) error
	Collections(ctx context.Context) ([]store.Collection, error) // the node's own

	// The records of the sources.
	StageSource(ctx context.Context, name string, records iter.Seq2[fragment.Record, error], mark store.Mark,
		progress func(store.Loading)) error
	StageRecords(ctx context.Context, name string, records iter.Seq2[sources.Stated, error],
		change func(*sources.Progress)) error
	StageLog(ctx context.Context, name, feedID string, entries iter.Seq2[store.Logged, error],
		fetch func(context.Context, *store.Logged) error) error
	SwitchSource(ctx context.Context, name string, generation uint32, note string) error
	ApplyEntries(ctx context.Context, name string, f func(*store.Applying) error) error
	Span(ctx context.Context, name string) ([]byte, error)
	Losses(ctx context.Context, name string) (losses.Measure, error)
	DigestNode(ctx context.Context, name string, path []byte) (*statedigest.Node, error)
	HeldRecords(ctx context.Context, name string, ids []string, f func(store.Held) error) error
	MendSource(ctx context.Context, name string) (sources.Mended, error)
	ReadSources(ctx context.Context, f func([]store.Subscription, []fragment.Source) error) error

	// Quarantine returns the changes that could not be applied.
	Quarantine(ctx context.Context, name string) ([]store.Quarantined, error)
	QuarantineOf(ctx context.Context, name string, generation uint32) ([]store.Quarantined, error)
	Missing(ctx context.Context, name string) (quarantine, owed []store.Quarantined, err error)
	Forget(ctx context.Context, name string, topics ...string) ([]store.Quarantined, error)

	Dir() string     // the data folder
	Scratch() string // returns the folder for temporary files
	MayWrite() error // returns an error if its disk is full
}

// Config configures a Client. Store is required; zero values of the others mean the defaults, as in [fetch.Fetcher].
type Config struct {
	Store Store

	// Formats are those in which extensions read topic maps.
	Formats formats.Registry

	// HTTP makes the requests. The default honours the proxy environment and
	// has time limits on connecting and waiting.
	HTTP *http.Client

	// Protocols are those by which sources of records are followed.
	Protocols []follow.Protocol

	// Hosts may be followed to besides the one of the subscription ("host" or "host:port").
	Hosts []string

	Parallel      int           // fragments fetched at a time; default 32
	Batch         int           // entries applied in one commit, at most; default 200
	Tries         int           // of each request; default 4
	Backoff       time.Duration // before the second try, growing; default 250 ms
	Stall         time.Duration // a try ends after this long without a byte; default 1 min
	MinRate       int64         // bytes per second, on an average of each Stall; fewer end a try; default 100
	MaxTime       time.Duration // for a feed document or a fragment; default 15 min
	MaxFragment   int64         // bytes, unpacked; default 256 MiB
	MaxSnapshot   int64         // bytes, unpacked; default 16 GiB
	MaxDocs       int           // documents of a feed in one round; default 100,000
	MaxQuarantine int           // topics of a source in quarantine; default 10,000
	MaxEntries    int           // entries of a feed or of lists that one round handles; default 10,000,000
	MaxFeed       int64         // bytes of the documents of a feed in one round, unpacked; default 16 GiB
	Feed          feeds.Limits  // of one feed document
	Document      xtm.Limits    // of one XTM document
	Lenient       bool          // read XTM 1.0 leniently

	// ConfirmAfter is the time after which a second reading confirms the losses of a first one; default 10 min.
	ConfirmAfter time.Duration
	// MaxDelete limits the losses of a source that are inferred without confirmation. See docs/follow.md.
	MaxDelete losses.Limit

	// AcceptMoves follows all sources that have moved for good: see [store.Subscription].
	AcceptMoves bool

	NoBundles bool // fetch each fragment by itself, though the server has documents with the fragments in them

	// Report receives a line of text about the progress of long work.
	Report func(line string)
	// Progress receives the progress of long work, very often.
	Progress func(Progress)

	// Locks are shared by the clients of a store, so that rounds of one subscription do not overlap.
	Locks *locks.Locks

	Logger *slog.Logger
	Now    func() time.Time
}

// Client syncs the subscriptions of a store. Rounds of one subscription must not overlap.
type Client struct {
	Config
	format *formats.Format // the only accepted format; nil: the best one
	limits follow.Scratch  // limits of a round's memory

	tolerated *tolerated
	moved     *moved              // nil: requests are not those of a subscription
	from      *fetch.Fetcher      // of the subscription; nil likewise
	late      []store.Quarantined // of a round: changes to apply late, see revisit
	unkept    []store.Quarantined // of a round: changes that the server no longer has, see checkKept

	// memory is the memory of a round about readings of the source, staged that of the generation being loaded. asking
	// bypasses caches.
	memory, staged *follow.Memory
	reading        *follow.Reading // the last one that was accepted
	asking         bool
	longest        time.Duration // see [follow.Judge]
	confirm        bool          // a person has confirmed the doubt of the source
	ask            bool          // rounds bypass caches
}

// New returns a client for c.
func New(c Config) (*Client, error) {
	if c.Store == nil {
		return nil, errors.New("client: Store is missing")
	}
	for name, n := range map[string]int64{
		"Parallel": int64(c.Parallel), "Batch": int64(c.Batch), "Tries": int64(c.Tries), "Backoff": int64(c.Backoff),
		"Stall": int64(c.Stall), "MinRate": c.MinRate, "MaxTime": int64(c.MaxTime), "MaxFragment": c.MaxFragment,
		"MaxSnapshot": c.MaxSnapshot, "MaxDocs": int64(c.MaxDocs),
		"MaxQuarantine": int64(c.MaxQuarantine), "ConfirmAfter": int64(c.ConfirmAfter), "MaxEntries": int64(c.MaxEntries),
		"MaxFeed": c.MaxFeed,
	} {
		if n < 0 {
			return nil, fmt.Errorf("client: %s is negative", name)
		}
	}
	f := c.fetcher().WithDefaults()
	c.HTTP, c.Tries, c.Backoff, c.Logger, c.Now = f.HTTP, f.Tries, f.Backoff, f.Logger, f.Now
	c.Stall, c.MinRate, c.MaxTime = f.Stall, f.MinRate, f.MaxTime
	c.ConfirmAfter = cmp.Or(c.ConfirmAfter, 10*time.Minute)
	c.Parallel = cmp.Or(c.Parallel, 32)
	c.Batch = cmp.Or(c.Batch, 200)
	c.MaxFragment = cmp.Or(c.MaxFragment, 256<<20)
	c.MaxSnapshot = cmp.Or(c.MaxSnapshot, 16<<30)
	c.MaxDocs = cmp.Or(c.MaxDocs, 100_000)
	c.MaxQuarantine = cmp.Or(c.MaxQuarantine, 10_000)
	c.MaxEntries = cmp.Or(c.MaxEntries, 10_000_000)
	c.MaxFeed = cmp.Or(c.MaxFeed, 16<<30)
	if c.Report == nil {
		c.Report = func(string) {}
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	c.Locks = cmp.Or(c.Locks, &locks.Locks{})
	return &Client{Config: c}, nil
}

// Subscription returns the subscription with a name. If there is none, the error is an [*UnknownError].
func (c *Client) Subscription(ctx context.Context, name string) (*store.Subscription, error) {
	all, err := c.Store.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(s store.Subscription) bool { return s.Name == name }); i >= 0 {
		return &all[i], nil
	}
	return nil, &UnknownError{name, names(all)}
}

func names(all []store.Subscription) (out []string) {
	for i := range all {
		out = append(out, all[i].Name)
	}
	return out
}
