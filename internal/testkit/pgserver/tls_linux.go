//go:build linux

package pgserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// StartTLS starts a server that also listens on the loopback interface. There it requires TLS and a password. Its
// certificate has only the address 127.0.0.1.
func StartTLS(t testing.TB, password string, settings ...string) *Server {
	t.Helper()
	address, err := testenv.FreeAddress()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	s := newServer(t, append(settings, "fsync=off", "ssl=on", "listen_addresses=127.0.0.1,127.0.0.2",
		"password_encryption=scram-sha-256"))
	s.port = port
	s.initialize()
	authority := newAuthority(t)
	certificate, key := authority.issue(t)
	s.write("server.crt", certificate)
	s.write("server.key", key)
	s.write("pg_hba.conf", []byte("local all all trust\nhostssl all all 127.0.0.0/8 scram-sha-256\n"))
	s.authority = authority.file(t)
	s.Run()
	s.SQL(t, fmt.Sprintf("ALTER USER tmshare PASSWORD '%s'", password))
	return s
}

// write makes a file in the folder of the server's data, which only the server may read.
func (s *Server) write(name string, content []byte) {
	s.t.Helper()
	path := filepath.Join(s.data(), name)
	require.NoError(s.t, os.WriteFile(path, content, 0o600))
	_, err := AsUser(path)
	require.NoError(s.t, err)
}

// Authority returns the file with the certificate of the authority that the server's certificate is of.
func (s *Server) Authority() string { return s.authority }

// OtherAuthority returns the file with the certificate of an authority that no server's certificate is of.
func OtherAuthority(t testing.TB) string {
	t.Helper()
	return newAuthority(t).file(t)
}

// TCP returns the address of a database of the server over TCP. The host is 127.0.0.1 and the port the server's, unless
// another one is given.
func (s *Server) TCP(host string, options url.Values) string {
	if host == "" {
		host = "127.0.0.1"
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, s.port)
	}
	u := url.URL{Scheme: "postgres", User: url.User("tmshare"), Host: host, Path: "/postgres", RawQuery: options.Encode()}
	return u.String()
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key}
}

// issue returns a certificate for 127.0.0.1, and its key.
func (a *authority) issue(t testing.TB) (certificate, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: a.certificate.NotBefore,
		NotAfter:    a.certificate.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &own.PublicKey, a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// file returns a file with the certificate of the authority.
func (a *authority) file(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root.crt")
	require.NoError(t,
		os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}), 0o600))
	return path
}
