package resources

import "github.com/tmshare/tmshare/internal/store"

// Offered, ChangesPerList and ChangeListAfter are the settings of collections.
var (
	Offered = store.Setting{Extension: name, Name: "resourceSync", Default: true, Publishes: true,
		Usage: "offer the collection by ResourceSync"}
	// every reader gets such lists
	ChangesPerList = store.Setting{Extension: name, Name: "changesPerList", Default: 0, Most: 5000,
		Usage: "close a change list of ResourceSync after this `number` of changes"}
	ChangeListAfter = store.Setting{Extension: name, Name: "changeListAfter", Default: store.Period(0),
		Usage: "close a change list of ResourceSync when its first change is this `time` old"}
)

const name = "resourcesync"

// IsOffered reports whether a collection is offered by ResourceSync.
func IsOffered(c *store.Collection) bool { return store.ValueOf[bool](&Offered, c) }
