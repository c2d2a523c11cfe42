package formats

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFormatsOfFilesAndNames(t *testing.T) {
	ours := &Format{Name: "ours", MediaTypes: []string{"text/ours"}, Endings: []string{".ours"}, URLEnding: ".ours"}
	r := Registry{ours}
	for name, want := range map[string]*Format{
		"a.xtm": XTM21, "a.xtm21": XTM21, "a.xtm2": XTM20, "a.xtm1": XTM10, "a.cxtm": CXTM,
		"b/a.b.xtm1.gz": XTM10, "a.cxtm.gz": CXTM, "a.gz": nil, "a": nil, "-": nil, "a.n3": nil, "xtm": nil,
		"a.ours": ours, "a.OURS": ours, "a.ours.gz": ours,
	} {
		f, ok := r.OfFile(name)
		assert.Same(t, want, f, name)
		assert.Equal(t, want != nil, ok, name)
	}
	for name, want := range map[string]*Format{
		"xtm1": XTM10, "xtm1.0": XTM10, "xtm2": XTM20, "xtm2.0": XTM20, "xtm21": XTM21, "xtm2.1": XTM21, "cxtm": CXTM,
	} {
		f, err := r.All().Named(name)
		require.NoError(t, err)
		assert.Same(t, want, f)
	}
	_, err := r.All().Named("ctm")
	assert.EqualError(t, err, `unknown format "ctm": use xtm2.1, xtm2.0, xtm1, ours or cxtm`)
	_, err = r.Served().Named("cxtm")
	assert.EqualError(t, err, `unknown format "cxtm": use xtm2.1, xtm1 or ours`)
}
