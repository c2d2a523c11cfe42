package client_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// verifyIn compares all of egov in a data folder with the server.
func verifyIn(dir string) error {
	db, err := store.Open(context.Background(), store.Options{Dir: dir, Logger: silent})
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Protocols: ext.Protocols(), Store: db, Logger: silent})
	if err != nil {
		return err
	}
	v, err := c.Verify(context.Background(), "egov", true)
	if err == nil && !v.Equal {
		err = fmt.Errorf("not equal: %+v", v)
	}
	if err != nil {
		return err
	}
	return db.Close()
}

// damageFolder changes the records of some topics in a data folder that is closed, and cuts others.
func damageFolder(t *testing.T, dir string) {
	require.NoError(t, stores.Below(dir, func(engine kv.Engine) error {
		reader, err := engine.Snapshot(t.Context())
		require.NoError(t, err)
		defer reader.Close()
		w, err := engine.Begin(t.Context(), reader.Version())
		require.NoError(t, err)
		n := 0
		for r, err := range reader.Range(nil, keys.Space(keys.FirstNumber), false) {
			require.NoError(t, err)
			if keys.Table(r.Key) != keys.TableTopic {
				continue
			}
			value := bytes.Replace(r.Value, []byte("v1"), []byte("v0"), 1)
			if n++; n%2 == 0 {
				value = value[1:]
			}
			require.NoError(t, w.Put(bytes.Clone(r.Key), value))
		}
		require.Greater(t, n, 4)
		return w.Commit()
	}))
}

// A process that is killed at any request of a repair leaves a folder in which the rows agree with each other, or the
// damage. The next one repairs it.
func TestKillsDuringARepair(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	stores.InFolders(t)
	t.Parallel()
	document := doc(topics(6, "v1")...)
	o := publishing(t, document)
	s := inStep(t, o)
	require.NoError(t, s.db.Close())
	damageFolder(t, s.dir)
	damaged := t.TempDir()
	require.NoError(t, os.CopyFS(damaged, os.DirFS(s.dir)))
	mended := 0
	for at := int64(1); ; at++ {
		require.Less(t, at, int64(50))
		s.dir = t.TempDir()
		require.NoError(t, os.CopyFS(s.dir, os.DirFS(damaged)))
		var process atomic.Pointer[kill.Process]
		var requests atomic.Int64
		started := make(chan struct{})
		o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if requests.Add(1) < at {
				return false
			}
			<-started
			process.Load().Signal()
			<-r.Context().Done()
			return true
		})
		process.Store(kill.Start(t, "verify", s.dir))
		close(started)
		killed := process.Load().Wait()
		o.BreakWith(nil)
		s.open()
		s.configure()
		if findings(t, s.db) == nil {
			mended++
			s.sync() // is proven
		}
		v := s.verify()
		require.True(t, v.Equal)
		require.Empty(t, v.Replaced)
		require.Empty(t, findings(t, s.db))
		s.has(o, document)
		if !killed {
			require.Zero(t, v.Repaired, "it was repaired already")
			break
		}
		require.NoError(t, s.db.Close())
	}
	assert.Greater(t, mended, 5, "most kills come after the rows were mended")
}
