// Command tmshare-client keeps a local store in step with published topic maps.
package main

import (
	"os"

	"github.com/tmshare/tmshare/internal/clientcmd"
)

func main() { os.Exit(clientcmd.Main()) }
