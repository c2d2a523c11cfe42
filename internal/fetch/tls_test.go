package fetch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/fetch"
)

// secure serves by HTTPS with a certificate that an authority of its own has signed, and returns its address and the
// file with that authority.
func secure(t *testing.T, until time.Time, hosts ...net.IP) (address, authority string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	own := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: until.Add(-time.Hour), NotAfter: until, IPAddresses: hosts}
	signed := func(template *x509.Certificate) []byte {
		der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, key)
		require.NoError(t, err)
		return der
	}
	authority = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed(ca)}), 0o600))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed(own)}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, authority
}

// Each fault of a secure connection is reported with the remedy.
func TestCertificates(t *testing.T) {
	t.Parallel()
	here := net.IPv4(127, 0, 0, 1)
	get := func(address, authority string) (string, error) {
		h, err := fetch.Trusting(&http.Client{Transport: &http.Transport{}}, authority)
		require.NoError(t, err)
		f, err := fetch.Fetcher{HTTP: h, Tries: 1}.WithDefaults().From(address)
		require.NoError(t, err)
		text, _, err := fetch.Do(t.Context(), f, fetch.Request{URL: address, Max: 100},
			func(a *fetch.Answer) (string, error) {
				b, err := io.ReadAll(a.Body)
				return string(b), err
			})
		return text, err
	}
	valid, authority := secure(t, time.Now().Add(time.Hour/2), here)
	text, err := get(valid, authority)
	require.NoError(t, err)
	assert.Equal(t, "served", text)

	_, err = get(valid, "")
	assert.ErrorContains(t, err, `"source set NAME --ca-cert FILE"`)
	expired, authority := secure(t, time.Now().Add(-time.Hour), here)
	_, err = get(expired, authority)
	assert.ErrorContains(t, err, "its certificate has to be renewed, and check the clock of this machine")
	other, authority := secure(t, time.Now().Add(time.Hour/2), net.IPv4(192, 0, 2, 1))
	_, err = get(other, authority)
	assert.ErrorContains(t, err, "the certificate of the server is for another host")
	_, err = get(strings.Replace(valid, "https:", "http:", 1), "")
	assert.ErrorContains(t, err, "begin the address with https://")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	_, err = get(strings.Replace(plain.URL, "http:", "https:", 1), "")
	assert.ErrorContains(t, err, "begin the address with http://")

	_, err = fetch.Trusting(http.DefaultClient, filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, err, "--ca-cert: ")
}
