// Package ext has the list of all extensions.
package ext

import (
	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/ext/backup"
	"github.com/tmshare/tmshare/internal/ext/changes"
	"github.com/tmshare/tmshare/internal/ext/config"
	"github.com/tmshare/tmshare/internal/ext/demo"
	"github.com/tmshare/tmshare/internal/ext/derive"
	"github.com/tmshare/tmshare/internal/ext/doctor"
	"github.com/tmshare/tmshare/internal/ext/editing"
	"github.com/tmshare/tmshare/internal/ext/files"
	"github.com/tmshare/tmshare/internal/ext/folder"
	"github.com/tmshare/tmshare/internal/ext/key"
	"github.com/tmshare/tmshare/internal/ext/ldes"
	"github.com/tmshare/tmshare/internal/ext/manual"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/partitions"
	"github.com/tmshare/tmshare/internal/ext/postgres"
	"github.com/tmshare/tmshare/internal/ext/rdf"
	"github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/search"
	"github.com/tmshare/tmshare/internal/ext/since"
	"github.com/tmshare/tmshare/internal/ext/sparql"
	"github.com/tmshare/tmshare/internal/ext/websub"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// All returns all extensions, for one command. Extensions that answer instead of documents precede those that follow.
func All() []extension.Extension {
	shown, site := pages.Extension()
	return []extension.Extension{
		atompmh.Extension(), backup.Extension(), changes.Extension(), config.Extension(), demo.Extension(),
		derive.Extension(), doctor.Extension(), shown, editing.Extension(site),
		files.Extension(), folder.Extension(), key.Extension(), manual.Extension(),
		ldes.Extension(), partitions.Extension(), postgres.Extension(), rdf.Extension(),
		resourcesync.Extension(), search.Extension(), since.Extension(), sparql.Extension(), websub.Extension(),
	}
}

// Parts returns the constructors of the parts of a server with all extensions, without flags.
func Parts() []func(*server.Server) (*server.Part, error) { return extension.Parts(All()) }

// Protocols returns the protocols of all extensions.
func Protocols() []follow.Protocol { return extension.Protocols(All()) }

// Indexes returns the indexes of all extensions.
func Indexes() []txn.Index { return extension.Indexes(All()) }

// Formats returns the formats of all extensions, as they are without flags.
func Formats() formats.Registry { return extension.Formats(All()) }
