package pg_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// Over TCP the server is asked for TLS, its certificate is verified, and the password comes from the environment or
// from a file. An error says which of these is wrong, and shows no password.
func TestTLSAndPasswords(t *testing.T) {
	s := pgserver.StartTLS(t, "sesame")
	ca, other := s.Authority(), pgserver.OtherAuthority(t)
	passwords := filepath.Join(t.TempDir(), "pgpass")
	require.NoError(t, os.WriteFile(passwords, []byte("*:*:*:tmshare:sesame\n"), 0o600))
	for _, tt := range []struct {
		name     string
		host     string
		options  url.Values
		env      map[string]string
		password string
		refused  string // "": it opens
	}{
		{name: "password in the environment", options: url.Values{"sslrootcert": {ca}}, env: map[string]string{"PGPASSWORD": "sesame"}},
		{name: "password in a file", options: url.Values{"sslrootcert": {ca}}, env: map[string]string{"PGPASSFILE": passwords}},
		{name: "password given", options: url.Values{"sslrootcert": {ca}}, password: "sesame"},
		{name: "root in the environment", env: map[string]string{"PGPASSWORD": "sesame", "PGSSLROOTCERT": ca}},
		{name: "no verification, as asked for", options: url.Values{"sslmode": {"require"}}, password: "sesame"},
		{name: "of an authority that nobody has named", password: "sesame", refused: "sslrootcert=FILE"},
		{name: "of another authority", options: url.Values{"sslrootcert": {other}}, password: "sesame", refused: "unknown authority"},
		{name: "of another host", host: "127.0.0.2", options: url.Values{"sslrootcert": {ca}}, password: "sesame", refused: "127.0.0.2"},
		{name: "a root that is not there", options: url.Values{"sslrootcert": {ca + "x"}}, password: "sesame", refused: "no such file"},
		{name: "without TLS", options: url.Values{"sslmode": {"disable"}}, password: "sesame", refused: "no encryption"},
		{name: "wrong password", options: url.Values{"sslrootcert": {ca}}, password: "wrong", refused: "PGPASSWORD"},
		{name: "no password", options: url.Values{"sslrootcert": {ca}}, refused: "PGPASSFILE"},
		{name: "nobody listens", host: "127.0.0.1:1", options: url.Values{"sslrootcert": {ca}}, password: "sesame", refused: "refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"PGPASSWORD", "PGSSLMODE", "PGSSLROOTCERT"} {
				t.Setenv(name, tt.env[name])
			}
			t.Setenv("PGPASSFILE", filepath.Join(t.TempDir(), "none"))
			if file := tt.env["PGPASSFILE"]; file != "" {
				t.Setenv("PGPASSFILE", file)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			o := pg.Options{URL: s.TCP(tt.host, tt.options), Password: tt.password}
			_, err := pg.Migrate(ctx, o)
			if tt.refused == "" {
				require.NoError(t, err)
				e := pgserver.Open(t, o)
				_, err = e.Version(ctx)
				require.NoError(t, err)
				return
			}
			t.Log(err)
			require.Error(t, err)
			assert.ErrorContains(t, err, tt.refused)
			assert.NotContains(t, err.Error(), "sesame")
		})
	}
}
