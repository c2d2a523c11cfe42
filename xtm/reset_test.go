package xtm_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// What an encoder did before it was reset, and how that ended, must not show.
func TestResetEncoder(t *testing.T) {
	reifier := xtm.SubjectIdentifier("urn:reifier")
	topic := &xtm.Topic{
		SubjectIdentifiers: []tmdm.Locator{"urn:x"},
		ItemIdentifiers:    []tmdm.Locator{sp + "#x"}, // taken only once in each document
		Names:              []xtm.Name{{Value: "n", Type: xtm.SubjectIdentifier("urn:type"), Reifier: reifier}},
	}
	write := func(e *xtm.Encoder, out *bytes.Buffer) (string, xtm.Losses) {
		require.NoError(t, e.Topic(topic))
		require.NoError(t, e.Close())
		return out.String(), e.Losses()
	}
	for _, v := range []xtm.Version{xtm.V10, xtm.V20, xtm.V21} {
		if v == xtm.V20 { // it knows topics by their ids alone
			reifier = xtm.ItemIdentifier(sp + "#reifier")
			topic.Names[0].Type, topic.Names[0].Reifier = xtm.ItemIdentifier(sp+"#type"), reifier
		}
		var fresh bytes.Buffer
		want, losses := write(xtm.NewEncoder(&fresh, v, sp), &fresh)
		ends := map[string]func(*xtm.Encoder){
			"closed":  func(e *xtm.Encoder) { _, _ = e.Topic(topic), e.Close() },
			"left":    func(e *xtm.Encoder) { _ = e.Topic(topic) },
			"in need": func(e *xtm.Encoder) { _ = e.Topic(&xtm.Topic{}) },
			"amid an element": func(e *xtm.Encoder) {
				_ = e.Topic(&xtm.Topic{SubjectIdentifiers: topic.SubjectIdentifiers, Names: []xtm.Name{{Value: "\x00", Reifier: reifier}}})
			},
		}
		for name, end := range ends {
			e := xtm.NewEncoder(io.Discard, xtm.V10, "http://elsewhere.example.org/")
			e.NameTypes = xtm.OntopiaNameTypes
			end(e)
			var out bytes.Buffer
			e.Reset(&out, v, sp)
			got, gotLosses := write(e, &out)
			assert.Equal(t, want, got, "XTM %s after one that was %s", v, name)
			assert.Equal(t, losses, gotLosses)
		}
	}
}
