package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/filestate"
)

// certificates are the files of --tls-cert and --tls-key. They are read again after changes, so that a renewed
// certificate needs no restart.
type certificates struct {
	cert, key string
	every     time.Duration // minimum time between two checks of the files
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	files   string // size and time of the current files
	checked time.Time
}

func loadCertificates(cert, key string, log *slog.Logger) (*certificates, error) {
	c := &certificates{cert: cert, key: key, every: time.Minute, log: log, checked: time.Now()}
	return c, c.load()
}

// get is for [tls.Config.GetCertificate].
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= c.every {
		c.checked = now
		if err := c.load(); err != nil { // maybe only one of the files is new so far
			c.log.Error("the old certificate stays in use", "error", err)
		}
	}
	return c.current, nil
}

// load reads the files unless they look as they did.
func (c *certificates) load() error {
	files := ""
	for _, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		files += filestate.Describe(info) + "\n"
	}
	if files == c.files {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s, --tls-key %s: %w; give a certificate and its key, both as PEM", c.cert, c.key, err)
	}
	if c.current != nil {
		c.log.Info("the certificate was read again", "file", c.cert)
	}
	c.current, c.files = &pair, files
	return nil
}
