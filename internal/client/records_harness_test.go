package client_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/store"
)

// The common part of tests of sources of records: sources with the two forms of Atom-PMH, or the lists of ResourceSync,
// and changes of the records of a server.

// The forms in which records are published.
const (
	archived = "/records"
	complete = "/records/complete"
	lists    = "/resourcesync/capabilitylist.xml"
)

var forms = []string{archived, complete, lists}

var protocols = map[string]store.Protocol{archived: store.Protocol("atom-pmh"), complete: store.Protocol("atom-pmh"), lists: store.Protocol("resourcesync")}

// record subscribes to the records of a collection.
func (s *subscriber) record(o *origin, collection, form, as string) {
	sub, err := s.Subscribe(context.Background(), o.RecordsURL(collection, form), client.SubscribeOptions{Name: as})
	require.NoError(s.t, err)
	require.Equal(s.t, protocols[form], sub.Protocol)
}

// recorded returns a subscriber whose egov follows records, after its clean start.
func recorded(t *testing.T, o *origin, form string, change ...func(*client.Config)) *subscriber {
	s := newSubscriber(t, change...)
	s.record(o, "egov", form, "egov")
	s.sync()
	o.Seen()
	return s
}

// inForms runs a test for each form.
func inForms(t *testing.T, f func(t *testing.T, form string)) {
	for _, form := range forms {
		t.Run(strings.TrimPrefix(strings.ReplaceAll(form, "/", " "), " "), func(t *testing.T) {
			t.Parallel()
			f(t, form)
		})
	}
}

// hasRecordsOf asserts that a source has the records of the server, each as it is there.
func (s *subscriber) hasRecordsOf(o *origin, collection, name string) {
	s.t.Helper()
	o.Source(collection, func(_ *store.View, src fragment.Source) {
		followtest.SameRecords(s.t, followtest.Contents(s.t, src), s.here()[name], "%s", name)
	})
}
