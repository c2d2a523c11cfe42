package bench_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// BenchmarkExport measures the export of a followed map, without and with the item identifiers of the sources. The
// reference writes the same map from memory ([xtm.Write]).
func BenchmarkExport(b *testing.B) {
	origin := serve(b, importInto(b, synthesize(b, mapSize())))
	folder := filepath.Join(b.TempDir(), "copy")
	cleanStart(b, origin.url+"/topicmaps/"+collection, folder)
	origin.stop()
	db, err := store.Open(b.Context(), store.Options{Dir: folder, Indexes: ext.Indexes(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer db.Close()
	view := merged.View{Store: db}
	for name, claims := range map[string]bool{"Plain": false, "Claims": true} {
		b.Run(name, func(b *testing.B) {
			tm, _, err := view.Map(b.Context(), claims)
			require.NoError(b, err)
			var reference tally
			fromMemory := best(max(rounds(), 2), func() {
				reference = 0
				_, err := xtm.Write(&reference, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(synthetic.Base)})
				require.NoError(b, err)
			})
			tm = nil
			var written tally
			d := bestOf(b, func() {
				written = 0
				_, err := view.Export(b.Context(), &written, formats.XTM21, claims)
				require.NoError(b, err)
			})
			require.Greater(b, float64(written), 0.5*float64(reference))
			rate(b, float64(written)/1e6, "MB", d)
			ratio(b, d.Seconds(), fromMemory.Seconds(), "time-of-xtm.Write")
		})
	}
}
