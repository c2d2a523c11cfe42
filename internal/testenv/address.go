package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/tmshare/tmshare/internal/durable"
)

// claims are the files that say which ports this process has given out. They are locked as long as it runs.
var claims struct {
	sync.Mutex
	files []*os.File
}

// FreeAddress returns a loopback address without a listener. Systems do not give its port to connections, and
// no other process of tests gets it. So no other test takes it before it is used.
func FreeAddress() (string, error) {
	claims.Lock()
	defer claims.Unlock()
	folder := filepath.Join(os.TempDir(), "tmshare-ports")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		f, err := os.OpenFile(filepath.Join(folder, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			continue // it is another user's
		}
		if held, err := durable.Lock(f, false); held || err != nil {
			f.Close()
			continue
		}
		claims.files = append(claims.files, f)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("100 ports of 127.0.0.1 between 20000 and 32000 are taken: end the programs that listen there")
}
