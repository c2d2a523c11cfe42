package pg_test

import (
	"testing"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

func TestContract(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	kvtest.Run(t, func(t *testing.T) kv.Engine { return pgserver.Open(t, s.Store(t)) })
	t.Run("histories", func(t *testing.T) {
		testenv.SkipUnderRace(t)
		kvtest.Histories(t, func(t *testing.T) kv.Engine { return pgserver.Open(t, s.Store(t)) })
	})
}

func TestChanged(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	kvtest.Changed(t, func(t *testing.T) []kv.Engine {
		o := s.Store(t)
		return []kv.Engine{pgserver.Open(t, o), pgserver.Open(t, o), pgserver.Open(t, o)}
	})
}

func TestPutBack(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	kvtest.PutBack(t, func(t *testing.T) (kv.Engine, func() (kv.Engine, func() kv.Engine)) {
		o := s.Store(t)
		e := pgserver.Open(t, o)
		return e, func() (kv.Engine, func() kv.Engine) {
			dump := s.Dump(t, o.Schema)
			return e, func() kv.Engine {
				s.Restore(t, o.Schema, dump)
				return e
			}
		}
	})
}

func TestDurable(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t)
	options := map[string]pg.Options{}
	kvtest.Durable(t, func(t *testing.T, folder string) kv.Engine {
		o, ok := options[folder]
		if !ok {
			o = s.Store(t)
			options[folder] = o
		}
		s.Kill()
		s.Run()
		return pgserver.Open(t, o)
	})
}
