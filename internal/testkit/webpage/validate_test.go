package webpage_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/internal/testkit/webpage"
)

// The validator finds an error, with its place. This shows that it reads the pages.
func TestValidatorFindsWhatIsWrong(t *testing.T) {
	v := webpage.NewValidator(t)
	v.Add("http://x/right.html", []byte("<!DOCTYPE html>\n<html lang=\"en\"><head><title>x</title></head><body><p>x</p></body></html>\n"))
	faults, checked := v.Faults()
	assert.Empty(t, faults)
	wrong := &webpage.Validator{}
	*wrong = *webpage.NewValidator(discard{t})
	wrong.Add("http://x/wrong.html", []byte("<!DOCTYPE html>\n<html lang=\"en\"><head><title>x</title></head><body><span><p>x</p></span></body></html>\n"))
	faults, _ = wrong.Faults()
	if checked {
		assert.Regexp(t, `^http://x/wrong.html:2:\d+: .*<p>`, faults[0])
	}
}

// discard is a test whose checks at the end are skipped.
type discard struct{ testing.TB }

func (discard) Cleanup(func()) {}
