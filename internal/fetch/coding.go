package fetch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// acceptCodings are the content codings that we read. Servers keep gzip ready.
const acceptCodings = "gzip, zstd;q=0.9"

// maxWindow limits the memory for unpacking, in bytes (RFC 9659 §3, Window Size).
const maxWindow = 8 << 20

// withoutCoding returns the content of a body without its content coding (RFC
// 9110 §8.4, Content-Encoding). Closing it closes the body.
func withoutCoding(body io.ReadCloser, coding string) (io.ReadCloser, error) {
	switch coding {
	case "":
		return body, nil
	case "gzip":
		z, _ := gzipReaders.Get().(*gzip.Reader)
		if z == nil {
			z = new(gzip.Reader)
		}
		if err := z.Reset(body); err != nil {
			return nil, fmt.Errorf("gzip: %w", unexpectedEnd(err))
		}
		return &gunzipped{z, body}, nil
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", unexpectedEnd(err))
		}
		return &unzstd{z, body}, nil
	}
	return nil, fmt.Errorf("the content coding %q is not known, nor was it asked for", coding)
}

// contentCoding returns the content coding of an answer, "" if it has none.
func contentCoding(h http.Header) string {
	switch c := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding"))); c {
	case "identity":
		return ""
	case "x-gzip": // RFC 9110 §8.4.1.3, Gzip Coding
		return "gzip"
	default:
		return c
	}
}

// unexpectedEnd makes the end of a packed body, before that of its content, an
// error.
func unexpectedEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// gzipReaders are used again: there may be one for each small fragment.
var gzipReaders sync.Pool

type gunzipped struct {
	z    *gzip.Reader
	body io.ReadCloser
}

func (g *gunzipped) Read(p []byte) (int, error) { return g.z.Read(p) }

func (g *gunzipped) Close() error {
	if g.z != nil {
		gzipReaders.Put(g.z)
		g.z = nil
	}
	return g.body.Close()
}

type unzstd struct {
	*zstd.Decoder
	body io.ReadCloser
}

func (u *unzstd) Close() error {
	u.Decoder.Close()
	return u.body.Close()
}
