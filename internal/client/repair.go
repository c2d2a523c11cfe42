package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/merge"
)

// maxRepairs is the number of topics that one round repairs. If more differ, a clean replacement costs less.
const maxRepairs = 10_000

// maxNode is the maximum length of a tree node from a source, in bytes.
const maxNode = 1 << 20

// repairError is the error of a fetch for a repair.
type repairError struct{ err error }

func (e *repairError) Error() string { return e.err.Error() }
func (e *repairError) Unwrap() error { return e.err }

// errMoved is the error for a source that has changed since the feed was read.
var errMoved = errors.New("the source has changed meanwhile")

// digestHeader is the header with the present digest of a source.
const digestHeader = "TMShare-Digest"

// provenOrRepaired compares the held records with the source's digest, and repairs differences. If that fails, the
// source must be replaced: the error is an [*unmendableError] then. A generation that is being loaded is not replaced
// again.
func (u *fragments) provenOrRepaired(ctx context.Context, run func() error) error {
	for tries, fetched := 0, 0; ; tries++ {
		p, err := u.prove(ctx)
		if err != nil {
			return err
		}
		applied := u.s.Applied()
		// A source that signs its statements is retried in each round: then the connection causes the difference.
		given := applied.NoRepair || applied.RepairFailed && u.s.Key == ""
		if applied.Proof = p; p == nil || p.Equal || !p.Differs || given || tries == maxGone {
			return nil
		}
		n, err := u.repair(ctx)
		var many *statedigest.TooManyError
		var failed *repairError
		switch {
		case errors.Is(err, errMoved):
			if err := run(); err != nil { // apply changes first
				return err
			}
			continue
		case errors.As(err, &many):
			return u.giveUpRepair(ctx, p, fmt.Sprintf("more than %d topics are not as the source states", many.Most))
		case errors.As(err, &failed) && ctx.Err() == nil: // the feed's changes are applied; the next round retries
			p.Reason = fmt.Sprintf("what is held differs from what the source states, and what differs cannot be found: %v",
				failed.err)
			return nil
		case err != nil:
			return err
		}
		held, err := u.prove(ctx)
		if err != nil {
			return err
		}
		// a damaged topic may have had identifiers of another one, which then lost associations
		again := n > 0 && fetched == 0
		fetched += n
		switch applied.Proof = held; {
		case held.Equal:
			u.r.Repaired += fetched
			return nil
		case !again:
			return u.giveUpRepair(ctx, held,
				fmt.Sprintf(
					"what is held is not what the source states, and %d topics that were fetched anew have not changed that", fetched))
		}
	}
}

// giveUpRepair requests a clean replacement, or, within one, notes that repairs are given up, because the source may
// state wrong digests.
func (u *fragments) giveUpRepair(ctx context.Context, p *store.Proof, reason string) error {
	applied := u.s.Applied()
	if u.s.Staging == nil && !applied.RepairFailed {
		return &unmendableError{reason}
	}
	p.Reason, applied.RepairFailed = reason+": tell the owner of the server", true
	return u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) error {
		a.RepairFailed = true
		return nil
	})
}

// repair finds the topics that differ from the source's, fetches these, and applies them in one commit. It returns
// their number. The error is [errMoved] if the source is not in the state of the mark.
func (u *fragments) repair(ctx context.Context) (int, error) {
	base, err := u.digestLink(ctx)
	if err != nil {
		return 0, &repairError{err}
	}
	stated := u.stated()
	c := statedigest.Comparison{
		Local: func(path []byte) (*statedigest.Node, error) { return u.Store.DigestNode(ctx, u.s.Name, path) },
		Remote: func(ctx context.Context, path string) (*statedigest.Document, error) {
			return u.fetchNode(ctx, strings.TrimSuffix(base+"/"+path, "/"), stated)
		},
		Parallel: u.Parallel, Most: maxRepairs,
	}
	topics, err := c.Differences(ctx)
	if err != nil {
		return 0, &repairError{err}
	}
	all := make([]*fragment.Fragment, 0, len(topics))
	type fetched struct {
		*fragment.Fragment
		err error
	}
	for f := range fetch.Ahead(ctx, u.Parallel, len(topics), func(ctx context.Context, i int) (fetched, int64) {
		f, size, err := u.fetchTopic(ctx, base, fragment.Ref(topics[i]))
		return fetched{f, err}, size
	}) {
		if f.err != nil {
			return 0, &repairError{f.err}
		}
		all = append(all, f.Fragment)
	}
	if ctx.Err() != nil || len(all) == 0 {
		return 0, ctx.Err()
	}
	u.Report(fmt.Sprintf("%s: topics that differ from what the source states: %d; they are fetched anew",
		u.s.Name, len(all)))
	u.Logger.Warn("repair", "subscription", u.s.Name, "topics", len(all))
	return len(all), u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) error {
		note := store.Activity{Kind: store.ActivityRepaired}
		for _, f := range all {
			if err := merge.Apply(a.State, f); err != nil {
				return fmt.Errorf("repairing %s: %w", f.TopicSI, err)
			}
			e := sources.ActivityEntry{TopicSI: string(f.TopicSI), State: string(feeds.StateLive), Updated: a.Mark.Updated}
			if f.Deleted {
				e.State = string(feeds.StateDeleted)
			}
			note.Entries = append(note.Entries, e)
		}
		return a.Note(note)
	})
}

// digestLink returns the address of the tree of the source's digest.
func (u *fragments) digestLink(ctx context.Context) (string, error) {
	recent, _, err := u.getFeed(ctx, u.s.FragmentsFeed, "")
	if err != nil {
		return "", err
	}
	link, ok := recent.Link(feeds.RelStateDigest)
	if !ok {
		return "", fmt.Errorf(
			"%s: the feed states digests, but does not link to what they are made of: tell the owner of the server",
			u.s.FragmentsFeed)
	}
	return link.Href, nil
}

// fetchNode fetches a node of the tree of the state with a digest.
func (u *fragments) fetchNode(ctx context.Context, at, stated string) (*statedigest.Document, error) {
	r := fetch.Request{URL: at, Accept: "application/json", Max: maxNode, Within: u.MaxTime}
	d, _, err := fetch.Do(ctx, u.fetcher(), r, func(a *fetch.Answer) (*statedigest.Document, error) {
		if a.Header.Get(digestHeader) != stated {
			return nil, fetch.Permanent(errMoved)
		}
		var d statedigest.Document
		if err := json.NewDecoder(a.Body).Decode(&d); err != nil {
			return nil, fmt.Errorf("%s: %w", a.URL, err)
		}
		return &d, nil
	})
	return d, err
}

// fetchTopic fetches the source's present topic. A topic that it does not have is deleted.
func (u *fragments) fetchTopic(ctx context.Context, base string,
	topic fragment.Ref) (*fragment.Fragment, int64, error) {
	named := fragment.Identity{SubjectIdentifiers: []fragment.Ref{topic}}
	r := fetch.Request{URL: base + "/topic?si=" + url.QueryEscape(string(topic)), Accept: u.links().Accept(),
		Max: u.MaxFragment, Within: u.MaxTime}
	f, a, err := fetch.Do(ctx, u.fetcher().Uncached(), r, func(a *fetch.Answer) (*fragment.Fragment, error) {
		f, err := fragment.ReadAs(ctx, a.Body, u.xtmOptions(u.s.SP, a.URL, a.ContentType), fragment.Named{Identity: named})
		return f, limitsLast(err)
	})
	if follow.Gone(err) && !follow.IsServerFault(err) {
		return &fragment.Fragment{TopicSI: topic, Deleted: true, Topic: &fragment.Topic{Identity: named}}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	f.Deleted = false
	return f, a.Body.Size(), nil
}
