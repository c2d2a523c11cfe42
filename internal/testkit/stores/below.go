package stores

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/datafolder"
)

// Below changes rows of a data folder that is closed, below its store. The folder is as if its store had closed it.
func Below(dir string, change func(engine kv.Engine) error) error {
	b, err := os.ReadFile(filepath.Join(dir, "node.json"))
	if err != nil {
		return err
	}
	var id datafolder.Identity
	if err := json.Unmarshal(b, &id); err != nil {
		return err
	}
	folder, err := badger.Lock(filepath.Join(dir, datafolder.Database), false)
	if err != nil {
		return err
	}
	if err := folder.Inspect(id.Node); err != nil {
		folder.Unlock()
		return err
	}
	engine, err := folder.Open(badger.Options{Logger: slog.New(slog.DiscardHandler), Node: id.Node})
	if err != nil {
		return err
	}
	return errors.Join(change(engine), engine.Close())
}
