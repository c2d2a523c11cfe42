package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// Store has the methods of a store that the server needs: reading, publishing, and maintenance.
type Store interface {
	upkeep.Store
	publish.Store

	Settings() []store.Setting // that collections have
	Subscriptions(ctx context.Context) ([]store.Subscription, error)
	Subscription(ctx context.Context, name string) (*store.Subscription, error)
	LatestAt(ctx context.Context, name string) (l *store.Latest, checked time.Time, err error)
	VersionAt(ctx context.Context) (store.Version, time.Time, error)
	BeginOpening(ctx context.Context) error
	WatchHistory(ctx context.Context)
	ReadParts(ctx context.Context, f func([]store.Part) error) error
	ViewOf(c store.Collection, state merge.State) *store.View
	Sizes() (store.Sizes, error)
	NoteBaseURL(ctx context.Context, url string) (before string, err error)
	Dependents(ctx context.Context, names ...string) ([]store.Dependent, error)
	Dir() string
	Scratch() string
	Node() uuid.UUID
	Jobs() map[string]bool

	// Files returns the storage of parts for files.
	Files() files.Store
	Extend(ctx context.Context, name string, f func(*store.View) error) error
	Touch(ctx context.Context) error

	DeriveAgain(ctx context.Context, name string, names []string, filter *store.Filter, change func(*store.Settings) error,
		checks ...func(*store.Collection) error) (*store.Collection, error)
	ChangeSettings(ctx context.Context, name string, change func(*store.Settings) error,
		checks ...func(*store.Collection) error) (*store.Collection, error)
	RenameCollection(ctx context.Context, name, to string,
		checks ...func(*store.Collection) error) (*store.Collection, error)
	ForgetCollection(ctx context.Context, name string) error
	DeleteCollection(ctx context.Context, name, note string, checks ...func(*store.Collection) error) error
}

// Config configures a Server. Store and BaseURL are required; zero values of
// the others mean the defaults.
type Config struct {
	Store Store

	// BaseURL is the public address of the server, without a slash at the end.
	// All links are made from it, never from the Host of a request.
	BaseURL string

	// Name is the name of the server for people, in one line; "": none, and pages use the host of BaseURL.
	Name string

	// Tokens are the bearer tokens that may write. Without any, requests may write that come from this machine, to a
	// server bound to a loopback address (OnLoopback), and not through a browser or a proxy.
	Tokens     []string
	OnLoopback bool

	// TokenNames are the names of the owners of some of Tokens, by token. Their changes have these as authors.
	TokenNames map[string]string

	// ReadTokens are the bearer tokens that may read a collection, by its name.
	// A collection without any is for all.
	ReadTokens map[string][]string

	// Formats are those in which extensions read and write topic maps.
	Formats formats.Registry

	// Parts are the constructors of the parts of extensions, in this order.
	Parts []func(*Server) (*Part, error)

	// TrustedProxies are the addresses of proxies, besides those of this machine, whose X-Forwarded-For the log uses
	// for the client's address. It has no other effect.
	TrustedProxies []netip.Prefix

	SlowClientTimeout time.Duration // time limit for a client to send or take 64 KiB; default 30 seconds
	SlowRequest       time.Duration // slower requests are logged as warnings; 0: none
	// time limit of a publication after its document is read; default 10 minutes
	PublishTimeout   time.Duration
	MaxWaiting       int                    // concurrent requests that wait for a change; 0: none
	MaxUploads       int                    // maps that are read at a time; default 2
	MetricsElsewhere bool                   // there is no /metrics here: MetricsHandler is at another address
	Collectors       []prometheus.Collector // have metrics that are shown as well

	Lenient      bool         // read XTM 1.0 leniently
	MaxBody      int64        // bytes of a request body, unpacked; default 1 GiB
	Limits       xtm.Limits   // on documents that are read; default of Roles: 1,000, of Memory: MaxBody, at least 256 MiB
	MaxDelete    losses.Limit // of a new version of a map, if its writer gives none
	DocumentSize int          // entries of an archive document, for new collections; default 100

	upkeep.Policy // of retention

	WatchEvery time.Duration // time between checks of watched files; default a second

	Logger *slog.Logger     // default slog.Default()
	Now    func() time.Time // default time.Now
}

// Validate checks c and fills in the defaults.
func (c *Config) Validate() error {
	if c.Store == nil {
		return errors.New("server: Store is missing")
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		strings.ContainsAny(c.BaseURL, "?#") {
		return fmt.Errorf(
			"the base URL %q (--base-url) is not an absolute http or https URL without query and fragment: write it as in "+
				"https://maps.example.org", c.BaseURL)
	}
	c.BaseURL, c.Name = strings.TrimSuffix(c.BaseURL, "/"), strings.TrimSpace(c.Name)
	if len(c.Name) > 200 || strings.ContainsFunc(c.Name, unicode.IsControl) {
		return fmt.Errorf("the name %q of the server (--name) is longer than 200 bytes, or than a line: shorten it",
			c.Name)
	}
	all := slices.Clone(c.Tokens)
	for collection, some := range c.ReadTokens {
		if err := store.ValidateName(collection); err != nil {
			return fmt.Errorf("read tokens: %w", err)
		}
		if len(some) == 0 {
			return fmt.Errorf("no read tokens are given for %s, which would be open to all: name a file with at least one",
				collection)
		}
		all = append(all, some...)
	}
	for _, t := range all {
		if len(t) < minToken {
			return fmt.Errorf("a token has %d characters, at least %d are needed; make a longer one", len(t), minToken)
		}
	}
	for name, negative := range map[string]bool{
		"DocumentSize": c.DocumentSize < 0, "MaxUploads": c.MaxUploads < 0, "PublishTimeout": c.PublishTimeout < 0,
		"SlowClientTimeout": c.SlowClientTimeout < 0, "SlowRequest": c.SlowRequest < 0, "WatchEvery": c.WatchEvery < 0,
		"MaxBody": c.MaxBody < 0, "Limits.Roles": c.Limits.Roles < 0,
	} {
		if negative {
			return fmt.Errorf("server: %s is negative", name)
		}
	}
	if err := c.Policy.Validate(); err != nil {
		return err
	}
	c.MaxBody = cmp.Or(c.MaxBody, 1<<30)
	c.SlowClientTimeout = cmp.Or(c.SlowClientTimeout, 30*time.Second)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 10*time.Minute)
	c.Limits.Roles = cmp.Or(c.Limits.Roles, 1000)
	c.Limits.Memory = cmp.Or(c.Limits.Memory, max(c.MaxBody, 256<<20))
	c.MaxUploads = cmp.Or(c.MaxUploads, 2)
	c.WatchEvery = cmp.Or(c.WatchEvery, time.Second)
	c.DocumentSize = cmp.Or(c.DocumentSize, 100)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// minToken is the least length of a token: shorter ones can be guessed.
const minToken = 16
