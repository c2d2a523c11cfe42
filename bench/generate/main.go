// Command generate writes a synthetic topic map (see package synthetic) to
// standard output.
//
//	go run ./bench/generate -topics 100000 > map.xtm
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tmshare/tmshare/bench/synthetic"
)

func main() {
	topics := flag.Int("topics", 100_000, "number of topics")
	flag.Parse()
	if err := synthetic.Write(os.Stdout, *topics); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
