package memory

import (
	"testing"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
)

func open(*testing.T) kv.Engine { return New() }

func TestContract(t *testing.T) { kvtest.Run(t, open) }

func TestContractOfReadersThatAnswerMany(t *testing.T) {
	kvtest.Run(t, func(*testing.T) kv.Engine { return &kvtest.Asked{Engine: New()} })
}

func TestChanged(t *testing.T) {
	kvtest.Changed(t, func(t *testing.T) []kv.Engine { return []kv.Engine{open(t)} })
}

func TestPutBack(t *testing.T) {
	kvtest.PutBack(t, func(*testing.T) (kv.Engine, func() (kv.Engine, func() kv.Engine)) {
		e := New()
		return e, func() (kv.Engine, func() kv.Engine) {
			saved := e.Copy()
			return e, func() kv.Engine { return saved }
		}
	})
}

func TestHistories(t *testing.T) {
	testenv.SkipUnderRace(t)
	kvtest.Histories(t, open)
}
