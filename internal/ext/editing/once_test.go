package editing_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/served"
)

// A form that is sent more than once, as by a second click, leads to its result each time, and is published once.
func TestFormsSentTwice(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	for name, f := range map[string]served.Form{"new": newTopic(t, b), "edit": changedName(t, b)} {
		a := b.Send(f, "preview")
		require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
		preview, before := served.FormOf(t, f.At, a), len(n.Feed("/topicmaps/m/fragments").Entries)
		var sending sync.WaitGroup
		led := make([]string, 4)
		fields := preview.Set("do", "publish").Fields
		for i := range led {
			sending.Go(func() {
				if a := b.Do(preview.At, fields); assert.Equal(t, http.StatusSeeOther, a.StatusCode, "%s: %s", name, a.Bytes) {
					led[i] = a.Header.Get("Location")
				}
			})
		}
		sending.Wait()
		assert.Equal(t, []string{led[0], led[0], led[0], led[0]}, led, name)
		assert.Equal(t, before+1, len(n.Feed("/topicmaps/m/fragments").Entries), name)
	}
}

func newTopic(t *testing.T, b *served.Browser) served.Form {
	f, _ := b.Open("/topicmaps/m/topics/new.html")
	return f.Set(f.Row(t, "name", "value", "")+"value", "Twice")
}

func changedName(t *testing.T, b *served.Browser) served.Form {
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	return f.Set(f.Row(t, "name", "value", "Oslo")+"value", "Twice, too")
}

// A value that a person could not see or find again is refused.
func TestFormsWithNothingInThem(t *testing.T) {
	t.Parallel()
	_, b := served.Editor(t, served.Small())
	f, _ := b.Open("/topicmaps/m/topics/new.html")
	a := b.Send(f, "preview")
	assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	assert.Contains(t, served.TextOf(t, a), "Nothing is filled in")
	for _, blank := range []string{" ", "\u00a0\u200b", "\u2066\u2069"} {
		f, _ = b.Open("/topicmaps/m/topics/new.html")
		a = b.Send(f.Set(f.Row(t, "name", "value", "")+"value", blank), "preview")
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
		assert.Contains(t, served.TextOf(t, a), "The name is empty")
	}
}
