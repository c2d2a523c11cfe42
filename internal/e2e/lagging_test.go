package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/nginx"
	"github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// alternating follows the collection egov through a front with answers of alternating age.
type alternating struct {
	*client.Client
	t             *testing.T
	db            *store.DB
	held          int // the version
	went, doubted int // rounds
}

// alternate subscribes to the collection egov behind a front, and makes the clean start.
func alternate(t *testing.T, front *nginx.Front, confirmAfter time.Duration) *alternating {
	a := &alternating{t: t, db: stores.Open(t, store.Options{Dir: t.TempDir(), Logger: node.Silent})}
	t.Cleanup(func() { require.NoError(t, a.db.Close()) })
	var err error
	a.Client, err = client.New(client.Config{Protocols: ext.Protocols(), Store: a.db, Logger: node.Silent, Backoff: time.Millisecond, ConfirmAfter: confirmAfter})
	require.NoError(t, err)
	_, err = a.Subscribe(t.Context(), front.URL+"/topicmaps/egov", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	_, err = a.Sync(t.Context(), "egov")
	require.NoError(t, err)
	return a
}

// version is the version of the map that is held: see map1.
func (a *alternating) version() (version int) {
	a.t.Helper()
	m, _, err := merged.View{Store: a.db, Report: func(string) {}}.Map(a.t.Context(), false, "egov")
	require.NoError(a.t, err)
	for topic := range m.Topics() {
		for _, n := range topic.Names() {
			if _, err := fmt.Sscanf(n.Value(), "v %d", &version); err == nil {
				return version
			}
		}
	}
	require.Fail(a.t, "there is no version")
	return 0
}

// round does a round, and reports whether it succeeded. The copy never goes back, is not replaced, and an old answer is
// no fork.
func (a *alternating) round() (went bool) {
	a.t.Helper()
	r, err := a.Sync(a.t.Context(), "egov")
	require.NotErrorAs(a.t, err, new(*client.CheckpointError), "an old answer is no fork")
	if errors.As(err, new(*follow.DoubtError)) {
		a.doubted++
	} else {
		require.NoError(a.t, err)
		require.False(a.t, r.CleanStart, r.Reason)
		a.went++
		went = true
	}
	now := a.version()
	require.GreaterOrEqual(a.t, now, a.held, "it goes back")
	a.held = now
	return went
}

// ends does a round with the newest state, which has this version.
func (a *alternating) ends(version int) {
	a.t.Helper()
	r, err := a.Sync(a.t.Context(), "egov")
	require.NoError(a.t, err)
	require.True(a.t, r.Proven)
	require.Equal(a.t, version, a.version())
	a.t.Logf("rounds that went on: %d, in doubt: %d", a.went, a.doubted)
}

// Behind one address are two servers, and one of them reads a lagging copy: a standby with a delay, or an earlier
// folder. Rounds that alternate between them, or reach one of them by chance, remove no data, raise no alarm, and
// continue when they reach the newer one.
func TestServersOfDifferentAgeBehindOneAddress(t *testing.T) {
	t.Parallel()
	for name, lags := range map[string]bool{"a standby": true, "a copy": false} {
		for _, signed := range []bool{false, true} {
			for order, confirmAfter := range map[string]time.Duration{"in turns": time.Nanosecond, "by chance": time.Hour} {
				t.Run(fmt.Sprintf("%s, signed %t, %s", name, signed, order), func(t *testing.T) {
					t.Parallel()
					front := nginx.NewFront(t)
					atFront := func(c *server.Config) { c.BaseURL = front.URL }
					create := func(o *node.Origin) {
						o.Create("egov", map1("v 0"))
						if signed {
							o.Sign("egov")
						}
						o.Put(map1("v 1"))
					}
					var newer, older *node.Origin
					if lags {
						primary := pgserver.Start(t, "fsync=off")
						at := primary.Store(t)
						newer = node.On(t, store.Options{Dir: t.TempDir(), Engine: pgserver.Open(t, at)}, atFront)
						create(newer)
						at.URL = primary.Standby("recovery_min_apply_delay=700ms").URL()
						older = node.On(t, store.Options{Dir: t.TempDir(), Engine: pgserver.Open(t, at), Access: store.Read}, atFront)
					} else {
						stores.InFolders(t)
						newer = node.New(t, atFront)
						create(newer)
						older = node.On(t, store.Options{Dir: newer.Backup(), Access: store.Read}, atFront)
					}
					front.Use(newer.URL)
					a := alternate(t, front, confirmAfter)
					random := testenv.Rand(1)
					version := 1
					for i := range testenv.Rounds(24, 400) {
						if i%4 == 0 {
							version++
							newer.Put(map1(fmt.Sprint("v ", version)))
						}
						old := i%2 == 1
						if order == "by chance" {
							old = random.IntN(2) == 1
						}
						if old {
							front.Use(older.URL)
							a.round()
							continue
						}
						front.Use(newer.URL)
						require.True(t, a.round(), "round %d", i)
						require.Equal(t, version, a.held, "round %d", i)
					}
					require.Positive(t, a.doubted, "one of them was behind")
					if lags {
						testenv.Eventually(t, func() bool {
							front.Use(newer.URL)
							a.round()
							front.Use(older.URL)
							return a.round()
						}, "what was behind has come up")
					}
					front.Use(newer.URL)
					a.ends(version)
				})
			}
		}
	}
}
