package server

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// Completing a tree changes only the checkpoint of the feed. Clients with the earlier feed get the new one.
func TestATreeThatIsCompletedIsAnotherState(t *testing.T) {
	c := store.Collection{Name: "egov", Head: 7}
	lacking := StateOf(&c)
	c.Hashed = 7
	assert.NotEqual(t, lacking, StateOf(&c))
}
