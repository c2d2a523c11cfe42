// Command tmshare-client keeps a local store in step with published topic maps.
package main

import (
	"os"

	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/ext"
)

func main() { os.Exit(clientcmd.Main(ext.All)) }
