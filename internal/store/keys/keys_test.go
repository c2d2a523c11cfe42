package keys

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	_ "github.com/tmshare/tmshare/internal/testenv" // the flags of tests
)

// The row that engines read with each version is one of the names.
func TestTheEraIsAmongTheNames(t *testing.T) { require.Equal(t, Meta("era"), kv.EraKey) }
