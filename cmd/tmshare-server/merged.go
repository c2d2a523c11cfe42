package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/tmdm"
)

// openMap opens a file to send as a whole map. Because the server does not open documents that a mergeMap names, it
// merges a file that may have one here, with files below root ("": its own folder). asked holds the options for reading
// RDF, which merges nothing.
func openMap(ctx context.Context, path, root string, known formats.Registry,
	asked url.Values) (*admin.Document, func(), error) {
	if f, ok := known.OfFile(path); ok && len(f.Asks) > 0 {
		return openXTM(known, path, asked)
	}
	merges := root != ""
	if info, err := os.Stat(path); !merges && err == nil && info.Mode().IsRegular() {
		merges, err = formats.MayMerge(path)
		if err != nil && !errors.As(err, new(*fs.PathError)) {
			err = &cli.ExitError{Code: cli.BrokenInput, Err: err}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if !merges {
		return openXTM(known, path, asked)
	}
	r, w := io.Pipe()
	return admin.Merged(func(sp string) (*admin.Document, error) {
		d, err := formats.Source{Path: path, Root: root, Base: tmdm.Locator(sp), Lenient: true, Formats: known}.Read(ctx)
		if err != nil {
			return nil, err
		}
		formats.WriteWarnings(os.Stderr, &d.Tolerated)
		go func() {
			_, err := formats.Target{Path: "-", Stdout: w}.Write(ctx, d.Encoder(formats.XTM21, formats.WriteOptions{}))
			w.CloseWithError(err)
		}()
		return admin.XTM(r, 0), nil
	}), func() { r.Close() }, nil
}
