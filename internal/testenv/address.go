package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddress returns a loopback address that nobody listens on. Its port is none of those that systems give to
// connections, so that no other test takes it before it is used.
func FreeAddress() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("100 ports of 127.0.0.1 between 20000 and 32000 are taken: end the programs that listen there")
}
