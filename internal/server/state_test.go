package server

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// A tree that is completed changes the checkpoint that the feed states, and nothing else. Who has the feed of before
// gets the new one.
func TestATreeThatIsCompletedIsAnotherState(t *testing.T) {
	c := store.Collection{Name: "egov", Head: 7}
	lacking := StateOf(&c)
	c.Hashed = 7
	assert.NotEqual(t, lacking, StateOf(&c))
}
