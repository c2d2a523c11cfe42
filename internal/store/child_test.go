package store

import (
	"fmt"
	"os"
	"testing"
)

// Tests that need another process start this program again, with a task in its
// environment.
const (
	childTask = "TMSHARE_STORE_TEST_TASK"
	childDir  = "TMSHARE_STORE_TEST_DIR"
)

var childTasks = map[string]func(dir string) error{
	"hold":    hold,
	"work":    work,
	"prune":   pruneOnce,
	"delete":  deleteOnce,
	"retain":  retain,
	"stage":   stageForever,
	"restate": restateOnce,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childTask); name != "" {
		task := childTasks[name]
		if task == nil {
			task = func(string) error { return fmt.Errorf("no task %q", name) }
		}
		if err := task(os.Getenv(childDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hold keeps a database open until it is killed.
func hold(dir string) error {
	if _, err := Open(testOptions(dir)); err != nil {
		return err
	}
	fmt.Println("open")
	select {}
}
