package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// full is an output that takes some bytes and fails then, once or for ever.
type full struct {
	left  int
	err   error
	heals bool
}

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left >= 0 || f.err == nil {
		return len(b), nil
	}
	err := f.err
	if f.heals {
		f.err = nil
	}
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: err}
}

// Output that cannot be written is an error, whether or not the command looks at what Write returns, and it is told
// once.
func TestOutputThatCannotBeWritten(t *testing.T) {
	ignores := func(err error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "some text")
			fmt.Fprintln(cmd.OutOrStdout(), "more")
			return err
		}
	}
	const message = "write /dev/stdout: no space left on device; free some space on the disk\n"
	for name, c := range map[string]struct {
		run    func(*cobra.Command, []string) error
		args   string
		code   int
		stderr string
	}{
		"ignored": {ignores(nil), "work", Failed, "program: " + message},
		"buffered": {func(cmd *cobra.Command, _ []string) error {
			w := bufio.NewWriter(cmd.OutOrStdout())
			fmt.Fprintln(w, "some text")
			w.Flush()
			return nil
		}, "work", Failed, "program: " + message},
		"returned": {func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "some text")
			return fmt.Errorf("export: %w", err)
		}, "work", Failed, "program: export: " + message},
		"differs":                {ignores(&ExitError{Code: Differs}), "work", Failed, "program: " + message},
		"differs, with a reason": {ignores(&ExitError{Quarantined, errors.New("2 are in quarantine")}), "work", Failed, "program: 2 are in quarantine\n" + message},
		"differs, wrapped":       {ignores(fmt.Errorf("m: %w", &ExitError{Differs, errors.New("no")})), "work", Failed, "program: m: no\n" + message},
		"usage":                  {ignores(UsageError(errors.New("no sense"))), "work", Usage, "program: no sense\n" + message},
		"another error":          {ignores(errors.New("no luck")), "work", Failed, "program: no luck\n" + message},
		"help":                   {ignores(nil), "work --help", Failed, "program: " + message},
		"help of a command":      {ignores(nil), "help work", Failed, "program: " + message},
		"help of all":            {ignores(nil), "", Failed, "program: " + message},
		"version":                {ignores(nil), "--version", Failed, "program: " + message},
		"completion":             {ignores(nil), "completion bash", Failed, "program: " + message},
		"quiet":                  {func(*cobra.Command, []string) error { return nil }, "work", OK, ""},
	} {
		for _, out := range []*full{{err: syscall.ENOSPC}, {left: 4, err: syscall.ENOSPC}, {err: syscall.ENOSPC, heals: true}} {
			root := &cobra.Command{Use: "program"}
			root.AddCommand(&cobra.Command{Use: "work", Args: Args(cobra.NoArgs), RunE: c.run})
			var b bytes.Buffer
			root.SetErr(&b)
			root.SetOut(out)
			root.SetArgs(strings.Fields(c.args))
			assert.Equal(t, c.code, Run(root, Environment{Getenv: os.Getenv}), name)
			assert.Equal(t, c.stderr, b.String(), name)
		}
	}
	// Nobody reads any more: nobody would read why.
	root := &cobra.Command{Use: "program", Args: Args(cobra.NoArgs), RunE: ignores(nil)}
	var b bytes.Buffer
	root.SetErr(&b)
	root.SetOut(&full{err: syscall.EPIPE})
	root.SetArgs([]string{})
	assert.Equal(t, ClosedPipe, Run(root, Environment{Getenv: os.Getenv}))
	assert.Empty(t, b.String())
}
