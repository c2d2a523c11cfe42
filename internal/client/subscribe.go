package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/discover"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/replicas"
)

// SubscribeOptions are the options of a subscription.
type SubscribeOptions struct {
	Name string // of the subscription; "" takes one from the URL

	// SP is the source locator prefix for a feed that declares none; "" makes one of the feed's URL. For other feeds it
	// must equal the declared one.
	SP string

	// Protocol is the protocol to use, one of [ProtocolNames]. "" takes the one that the URL shows.
	Protocol string

	store.Asked // in Format, the name of one that servers offer

	// AllowSharedPrefix allows a source to have the source locator prefix of a subscription that follows another server.
	AllowSharedPrefix bool

	// Again allows a second subscription to a source, by the same protocol and in the same format, under another name.
	Again bool

	// Key is the public key that has to sign the checkpoints of the source. "" takes the one of the first checkpoint,
	// if the source is signed.
	Key string

	// Replicas are URLs of replicas of the source: where it can be read too.
	Replicas []string

	// Replicate serves the source on, as a collection with the name of the subscription.
	Replicate bool
}

// ProtocolTMShare is the name of the protocol of fragments feeds, in any dialect.
const ProtocolTMShare = "tmshare"

// ProtocolNames returns the names of the protocols for sources, given these protocols of records.
func ProtocolNames(ofRecords []follow.Protocol) []string {
	names := []string{ProtocolTMShare}
	for i := range ofRecords {
		names = append(names, ofRecords[i].Name)
	}
	return names
}

// ProtocolOf returns the name of the protocol of a subscription.
func ProtocolOf(s *store.Subscription) string { return cmp.Or(string(s.Protocol), ProtocolTMShare) }

// Subscribe subscribes to the collection at a URL: an overview with one collection, a topic map feed, a fragments feed
// or a feed of records, or any URL that leads to a set of resources of a ResourceSync Source. If there are several
// collections, a [*follow.ChoiceError] lists them.
func (c *Client) Subscribe(ctx context.Context, ref string, o SubscribeOptions) (*store.Subscription, error) {
	if o.Format != "" {
		f, err := c.Formats.Served().Named(o.Format)
		if err != nil {
			return nil, err
		}
		o.Format = f.Name
	}
	if names := ProtocolNames(c.Protocols); o.Protocol != "" && !slices.Contains(names, o.Protocol) {
		return nil, fmt.Errorf("unknown protocol %q: there are %s", o.Protocol, strings.Join(names, ", "))
	}
	if o.Key != "" {
		if err := checkpoint.CheckPublic(o.Key); err != nil {
			return nil, err
		}
	}
	for _, path := range []*string{&o.TokenFile, &o.CACert} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	c, err := c.forSubscription(&store.Subscription{FragmentsFeed: ref, Asked: o.Asked})
	if err != nil {
		return nil, err
	}
	s, err := c.finder().Find(ctx, ref, o.Protocol, o.SP)
	if err != nil {
		return nil, err
	}
	s.Asked = o.Asked
	if s.Name = o.Name; s.Name == "" {
		s.Name = discover.NameFrom(s.FragmentsFeed)
	}
	if !validName(s.Name) {
		return nil, cli.UsageError(fmt.Errorf("%q cannot be the name of a subscription: use up to 100 letters, digits and "+
			"marks, no \"/\", no line breaks, and no \"-\" at the beginning (--as)", s.Name))
	}
	if s.Name == local.Name {
		return nil, cli.UsageError(
			fmt.Errorf("%q is the name of the local statements; choose another name with --as", s.Name))
	}
	if s.Replica = o.Replicate; s.Replica {
		if err := replicable(s); err != nil {
			return nil, err
		}
	}
	if err := c.checkOffered(ctx, s); err != nil {
		return nil, err
	}
	if err := c.addAddresses(ctx, s, o.Replicas); err != nil {
		return nil, err
	}
	if err := c.checkOwn(ctx, s); err != nil {
		return nil, err
	}
	if err := c.begin(ctx, s, o.Key); err != nil {
		return nil, err
	}
	if err := c.checkOthers(ctx, s, &o); err != nil {
		return nil, err
	}
	if err := c.Store.AddSubscription(ctx, *s); err != nil {
		if errors.Is(err, store.ErrExists) {
			return nil, fmt.Errorf("there is a subscription %q already; choose another name with --as", s.Name)
		}
		return nil, err
	}
	return s, nil
}

// OwnError is the error for subscribing to a collection of this node.
type OwnError struct{ Feed, Name string }

func (e *OwnError) Error() string {
	return fmt.Sprintf("%s is the collection %q of this node itself, which the merged view has already", e.Feed, e.Name)
}

// checkOwn returns an error where s is a collection of this node, or has the name of one.
func (c *Client) checkOwn(ctx context.Context, s *store.Subscription) error {
	own, err := c.Store.Collections(ctx)
	if err != nil {
		return err
	}
	for i := range own {
		switch {
		case own[i].SP == s.SP && own[i].Replica == nil:
			return &OwnError{s.FragmentsFeed, own[i].Name}
		case own[i].Name == s.Name:
			return fmt.Errorf("a collection of this node has the name %q; choose another name for the subscription with --as",
				s.Name)
		}
	}
	return nil
}

// checkOffered returns an error if RDF is requested, and the source does not offer it.
func (c *Client) checkOffered(ctx context.Context, s *store.Subscription) error {
	switch {
	case !c.links().Exchanged():
		return nil
	case s.Protocol != store.TMShare:
		return fmt.Errorf("the records of a source that is followed by %s are taken in XTM: leave out --format",
			ProtocolOf(s))
	}
	_, _, err := c.getFeed(ctx, s.FragmentsFeed, "")
	if err != nil {
		return err
	}
	newest, err := c.newestSnapshot(ctx, s)
	if err == nil && newest != nil {
		_, err = c.links().Snapshot(s.SnapshotsFeed, newest)
	}
	return err
}

// checkOthers returns an error if a subscription already follows the source of s, by the same protocol and in the same
// format, unless that is requested. The error is a [*SharedPrefixError] if a subscription to another server has the
// source locator prefix of s, unless that is allowed. The collections of one server may share one.
func (c *Client) checkOthers(ctx context.Context, s *store.Subscription, o *SubscribeOptions) error {
	all, err := c.Store.Subscriptions(ctx)
	for i := range all {
		other := &all[i]
		switch {
		case !o.Again && iri.SameDocument(other.FragmentsFeed, s.FragmentsFeed) && c.Formats.Same(other.Format, s.Format) &&
			ProtocolOf(other) == ProtocolOf(s) && (!strings.Contains(other.FragmentsFeed, "#") || // else both may be parts
			iri.NormalizeURL(other.FragmentsFeed) == iri.NormalizeURL(s.FragmentsFeed)):
			again := "; --again follows it twice"
			if s.Replica {
				again = ""
			}
			return fmt.Errorf("%s is subscribed to already, as %q: use that, or \"unsubscribe %[2]s\" first%s", s.FragmentsFeed,
				other.Name, again)
		case err == nil && !o.AllowSharedPrefix && other.SP == s.SP &&
			serverOf(other.FragmentsFeed) != serverOf(s.FragmentsFeed):
			err = &SharedPrefixError{s.SP, s.FragmentsFeed, other.Name, other.FragmentsFeed}
		}
	}
	return err
}

// serverOf returns the host and port of a URL, in the form in which they are compared.
func serverOf(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return iri.HostOf(u)
}

// replicable returns an error where a source cannot be served on.
func replicable(s *store.Subscription) error {
	if s.Protocol != store.TMShare {
		return fmt.Errorf(
			"a source that is followed by %s cannot be replicated: give the address of its fragments feed, or use \"subscribe\"",
			ProtocolOf(s))
	}
	if s.Format != "" {
		return errors.New("a replica has what the source says in all formats: leave out --format")
	}
	if err := store.ValidateName(s.Name); err != nil {
		return cli.UsageError(fmt.Errorf("%w (--as)", err))
	}
	_, err := replicas.EpochOf(s.FeedID)
	return err
}

// validName reports whether people can type a name and see it in a line.
func validName(name string) bool {
	return name != "" && len(name) <= 100 && name[0] != '-' && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == '/' })
}
