// Package resourcesync is an extension: a server offers its collections by ResourceSync (ANSI/NISO Z39.99), and the
// versions of topics by Memento (RFC 7089). Each collection is a set of resources: its live topics. Lists of the
// resources and of changes are files, see package resources. The first client that requests them waits until they are
// made.
//
//	serve.go      documents and files of a collection
//	discovery.go  what there is, for those who know the server alone
//	memento.go    versions of topics
//	upkeep.go     makes what is due
package resourcesync

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
)

// Options are the defaults for collections without their own settings. Zero values mean the built-in defaults.
type Options struct {
	ChangesPerList  int           // changes after which a change list is closed; default 1,000
	ChangeListAfter time.Duration // age of its first change at which it is; default 24 hours
	Sizes           resources.Sizes
}

func (o Options) withDefaults() Options {
	o.ChangesPerList, o.ChangeListAfter = cmp.Or(o.ChangesPerList, 1000), cmp.Or(o.ChangeListAfter, 24*time.Hour)
	return o
}

// Extension returns it, with its flags.
func Extension() extension.Extension {
	o := Options{Sizes: resources.Sizes{}.WithDefaults()}.withDefaults()
	return extension.Extension{
		Name:      "resourcesync",
		Protocols: []follow.Protocol{Protocol()},
		Settings:  []store.Setting{resources.Offered, resources.ChangesPerList, resources.ChangeListAfter},
		Flags: func(fl *pflag.FlagSet) {
			fl.IntVar(&o.ChangesPerList, resources.ChangesPerList.Flag(), o.ChangesPerList, resources.ChangesPerList.Usage)
			fl.DurationVar(&o.ChangeListAfter, resources.ChangeListAfter.Flag(), o.ChangeListAfter,
				resources.ChangeListAfter.Usage)
			fl.IntVar(&o.Sizes.PackageItems, "package-resources", o.Sizes.PackageItems,
				"`number` of resources in a package of a resource dump")
			fl.Int64Var(&o.Sizes.PackageBytes, "package-bytes", o.Sizes.PackageBytes,
				"largest package of a resource dump, in `bytes`")
			cli.Seldom(fl, resources.ChangesPerList.Flag(), resources.ChangeListAfter.Flag(), "package-resources",
				"package-bytes")
		},
		Serve: func(s *server.Server) (*server.Part, error) { return Serve(s, o) }, // once the flags are parsed
		Check: resources.Check,
	}
}

// part is the part of a server for ResourceSync and Memento. It is safe for concurrent use.
type part struct {
	Options
	server   *server.Server
	folder   resources.Folder
	sourcing sourcing
}

// Serve makes the part of a server that offers ResourceSync.
func Serve(s *server.Server, o Options) (*server.Part, error) {
	p, err := newPart(s, o)
	if err != nil {
		return nil, err
	}
	return &server.Part{
		Routes: p.routes, Links: p.links, TopicLinks: p.topicLinks, Followed: p.followed,
		Tasks: []upkeep.Task{{KeepUp: p.keepUp, Sweep: p.sweep}},
	}, nil
}

func newPart(s *server.Server, o Options) (*part, error) {
	if o.ChangesPerList < 0 || o.ChangeListAfter < 0 {
		return nil, errors.New("the number of changes, or the age, at which a change list is closed is negative")
	}
	return &part{Options: o.withDefaults(), server: s, folder: resources.Folder{Store: s.Store, Sizes: o.Sizes}}, nil
}

// links returns the link from documents of a collection to its Capability List, and from the overview to the Source
// Description (Z39.99 §6.3.3, Link).
func (p *part) links(c *store.Collection) []feeds.Link {
	switch {
	case c == nil:
		return []feeds.Link{{Rel: resourcesync.RelResourceSync, Href: resources.SourceDescriptionURL(p.server.BaseURL)}}
	case !resources.IsOffered(c):
		return nil
	}
	return []feeds.Link{{Rel: resourcesync.RelResourceSync, Href: p.site(c).CapabilityListURL()}}
}

// topicLinks returns the links from a topic to its TimeGate and TimeMap (RFC 7089 §4.2.1).
func (p *part) topicLinks(c *store.Collection, e *store.Entry) []feeds.Link {
	site := p.site(c)
	return []feeds.Link{{Rel: "timegate", Href: site.TimeGateURL(e.TopicSI)},
		{Rel: "timemap", Href: site.TimeMapURL(e.TopicSI), Type: resources.LinkFormat}}
}

// followed returns the URL of the change list of a collection.
func (p *part) followed(c *store.Collection) []string {
	if !resources.IsOffered(c) {
		return nil
	}
	return []string{p.site(c).ChangeListURL()}
}
