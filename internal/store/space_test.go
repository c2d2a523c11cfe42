//go:build linux

package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A disk that is nearly full is an error before anything is written to it.
func TestNearlyFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=100m"); err != nil {
		t.Skip("no small disk can be made here: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	db := openDB(t, filepath.Join(dir, "data"))
	subscribe(t, db, "s", mapOf(t, 3))
	fill, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	defer fill.Close()
	require.NoError(t, syscall.Fallocate(int(fill.Fd()), 0, 0, 50<<20))
	err = db.UpdateSubscription(t.Context(), "s", func(*Subscription) {})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "MB are free")
	require.Len(t, inQuarantine(t, db, "s"), 0, "it can be read")
	require.NoError(t, db.Close())
	_, err = Open(t.Context(), testOptions(filepath.Join(dir, "data")))
	require.True(t, errors.Is(err, syscall.ENOSPC))
	require.NoError(t, fill.Truncate(0))
	openDB(t, filepath.Join(dir, "data"))
}
