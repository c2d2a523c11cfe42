package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/tmshare/tmshare/internal/testkit/kill"
)

func TestMain(m *testing.M) {
	on := func(task func(dir string) error) func([]string) error {
		return func(args []string) error { return task(args[0]) }
	}
	kill.Main(m, kill.Tasks{
		"hold":    on(hold),
		"work":    on(work),
		"prune":   on(pruneOnce),
		"delete":  on(deleteOnce),
		"retain":  on(retain),
		"stage":   on(stageForever),
		"restate": on(restateOnce),
	})
}

// hold keeps a database open until it is killed.
func hold(dir string) error {
	if _, err := Open(context.Background(), testOptions(dir)); err != nil {
		return err
	}
	fmt.Println("open")
	select {}
}
