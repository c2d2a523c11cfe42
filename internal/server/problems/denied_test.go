package problems

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// A data folder that may not be written is named as the reason, without its path.
func TestAFolderThatMayNotBeWrittenIsTheReason(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/topicmaps/m/snapshot", nil)
	for _, cause := range []error{syscall.EROFS, syscall.EACCES} {
		answer, fault := Explain(r, fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: "/secret/x", Err: cause}))
		assert.True(t, fault)
		assert.Contains(t, answer.Error(), "data folder may be read-only")
		assert.NotContains(t, answer.Error(), "secret")
	}
	answer, _ := Explain(r, errors.New("secret"))
	assert.Equal(t, "the server failed; its log says why", answer.Error())
}
