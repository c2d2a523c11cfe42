package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// program runs a small program with one command and returns the exit code and the output on standard error.
func program(run func(cmd *cobra.Command, args []string) error, args ...string) (code int, stderr string) {
	root := &cobra.Command{Use: "program"}
	cmd := &cobra.Command{Use: "work", Args: Args(cobra.NoArgs), RunE: run}
	cmd.Flags().Int("number", 1, "a number")
	cmd.Flags().String("two-words", "default", "text")
	root.AddCommand(cmd)
	var b bytes.Buffer
	root.SetErr(&b)
	root.SetOut(&bytes.Buffer{})
	root.SetArgs(args)
	return Run(root, Environment{Getenv: os.Getenv}), b.String()
}

func TestExitCodesAndMessages(t *testing.T) {
	fails := func(err error) func(*cobra.Command, []string) error {
		return func(*cobra.Command, []string) error { return err }
	}
	for name, c := range map[string]struct {
		err    error
		args   []string
		code   int
		stderr string
	}{
		"success":          {nil, []string{"work"}, OK, ""},
		"error":            {errors.New("no luck"), []string{"work"}, Failed, "program: no luck\n"},
		"a code":           {&ExitError{Usage, errors.New("no sense")}, []string{"work"}, Usage, "program: no sense\n"},
		"a code, wrapped":  {fmt.Errorf("x: %w", &ExitError{Usage, errors.New("no sense")}), []string{"work"}, Usage, "program: x: no sense\n"},
		"only a code":      {&ExitError{Code: Differs}, []string{"work"}, Differs, ""},
		"a code beside":    {errors.Join(errors.New("a"), &ExitError{Usage, errors.New("b")}), []string{"work"}, Failed, "program: a\nb\n"},
		"unknown command":  {nil, []string{"wrok"}, Usage, "program: unknown command \"wrok\" for \"program\"\n\nDid you mean this?\n\twork\n\n"},
		"unknown flag":     {nil, []string{"work", "--x"}, Usage, "program: unknown flag: --x\nTry \"program work --help\"\n"},
		"argument":         {nil, []string{"work", "x"}, Usage, "program: \"x\" is left over; write program work [flags]\nTry \"program work --help\"\n"},
		"no such file":     {&fs.PathError{Op: "open", Path: "there", Err: syscall.ENOENT}, []string{"work"}, Failed, "program: open there: no such file or directory; name what is there, or make its folder first\n"},
		"advice is there":  {fmt.Errorf("%w: take another", &fs.PathError{Op: "open", Path: "there", Err: syscall.ENOENT}), []string{"work"}, Failed, "program: open there: no such file or directory: take another\n"},
		"several":          {errors.Join(&fs.PathError{Op: "open", Path: "a", Err: syscall.EACCES}, errors.New("b")), []string{"work"}, Failed, "program: open a: permission denied; look who may read and write it, or name another one\nb\n"},
		"negative":         {nil, []string{"work", "--number", "-1"}, Usage, "program: --number -1: it cannot be negative; leave the sign out\n"},
		"help":             {errors.New("not run"), []string{"help", "work"}, OK, ""},
		"help for nothing": {nil, []string{"help", "nothing"}, Usage, "program: unknown command \"nothing\" for \"program\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stderr := program(fails(c.err), c.args...)
			assert.Equal(t, c.code, code)
			assert.Equal(t, c.stderr, stderr)
		})
	}
}

func TestFlagsFromTheEnvironment(t *testing.T) {
	var number int
	var text string
	run := func(cmd *cobra.Command, _ []string) error {
		number, _ = cmd.Flags().GetInt("number")
		text, _ = cmd.Flags().GetString("two-words")
		return nil
	}
	t.Setenv("TMSHARE_NUMBER", "7")
	t.Setenv("TMSHARE_TWO_WORDS", "from the environment")
	code, _ := program(run, "work")
	assert.Zero(t, code)
	assert.Equal(t, 7, number)
	assert.Equal(t, "from the environment", text)

	code, _ = program(run, "work", "--number=1", "--two-words=") // also where it says what is the default
	assert.Zero(t, code)
	assert.Equal(t, 1, number)
	assert.Empty(t, text)

	_, _ = program(run, "work", "--number=0100") // no number of base 8
	assert.Equal(t, 100, number)

	t.Setenv("TMSHARE_TWO_WORDS", "")
	_, _ = program(run, "work")
	assert.Equal(t, "default", text, "an empty variable says nothing")

	t.Setenv("TMSHARE_NUMBER", "seven")
	code, stderr := program(run, "work")
	assert.Equal(t, Usage, code)
	assert.Contains(t, stderr, `program: TMSHARE_NUMBER: invalid argument "seven"`)
	code, _ = program(run, "work", "--help")
	assert.Zero(t, code)
}

func TestFlagsFromAnotherEnvironment(t *testing.T) {
	t.Setenv("TMSHARE_NUMBER", "7") // of this process, which does it for another
	number := 0
	root := &cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error { return nil }}
	root.Flags().IntVar(&number, "number", 1, "")
	root.SetArgs([]string{})
	assert.Zero(t, Run(root, Environment{Getenv: func(name string) string { return map[string]string{"TMSHARE_NUMBER": "8"}[name] }}))
	assert.Equal(t, 8, number)
}

func TestFlagsThatOnlyTheCommandLineSets(t *testing.T) {
	t.Setenv("TMSHARE_CHANGE", "from the environment")
	t.Setenv("TMSHARE_OTHER", "from the environment")
	var change, other string
	root := &cobra.Command{Use: "program"}
	cmd := &cobra.Command{Use: "work", RunE: func(*cobra.Command, []string) error { return nil }}
	cmd.Flags().StringVar(&change, "change", "default", "")
	CommandLineOnly(cmd.Flags())
	cmd.Flags().StringVar(&other, "other", "default", "")
	root.AddCommand(cmd)
	root.SetArgs([]string{"work"})
	assert.Zero(t, Run(root, Environment{Getenv: os.Getenv}))
	assert.Equal(t, "default", change)
	assert.Equal(t, "from the environment", other)
	root.SetArgs([]string{"work", "--change", "given"})
	assert.Zero(t, Run(root, Environment{Getenv: os.Getenv}))
	assert.Equal(t, "given", change)
}

func TestStateDir(t *testing.T) {
	t.Setenv("HOME", "/home/kari")
	t.Setenv("XDG_STATE_HOME", "/var/state")
	assert.Equal(t, "/var/state/tmshare/client", StateDir("client"))
	t.Setenv("XDG_STATE_HOME", "")
	assert.Equal(t, "/home/kari/.local/state/tmshare/server", StateDir("server"))
	t.Setenv("XDG_STATE_HOME", "state")
	assert.Equal(t, "/home/kari/.local/state/tmshare/server", StateDir("server"), "a relative folder is none")
	t.Setenv("HOME", "")
	assert.Empty(t, StateDir("server"), "no folder of a guess where there is no home")
}

// What is missing, left over or mistyped is named.
func TestArguments(t *testing.T) {
	none := func(*cobra.Command, []string) error { return nil }
	for line, want := range map[string]string{
		"import":                "NAME and FILE are missing; write program import NAME FILE [flags]",
		"import a":              "FILE is missing; write program import NAME FILE [flags]",
		"import a b c":          `"c" is left over; write program import NAME FILE [flags]`,
		"harvest":               "FOLDER is missing; write program harvest [URL] FOLDER [flags]",
		"harvest a b c":         `"c" is left over; write`,
		"many":                  "NAME... is missing; write",
		"revert":                "NAME is missing; write program revert NAME {SI --to TIME | --commit NUMBER} [flags]",
		"group lst":             `unknown command "lst" for "program group"; did you mean "program group list"?`,
		"group nothing":         `unknown command "nothing" for "program group"; there are list, show`,
		"group lst --flag x":    "unknown flag: --flag; there are list, show",
		"work --on --off":       "--quiet and --verbose contradict each other: give one of them",
		"work --on=false --off": "",
	} {
		root := &cobra.Command{Use: "program"}
		group := &cobra.Command{Use: "group", Args: Args(cobra.NoArgs), RunE: none}
		group.AddCommand(&cobra.Command{Use: "list", RunE: none}, &cobra.Command{Use: "show", RunE: none})
		work := &cobra.Command{Use: "work", Args: Args(cobra.NoArgs), RunE: none}
		work.Flags().Bool("quiet", false, "")
		work.Flags().Bool("verbose", false, "")
		root.AddCommand(group, work,
			&cobra.Command{Use: "import NAME FILE", Args: Args(cobra.ExactArgs(2)), RunE: none},
			&cobra.Command{Use: "harvest [URL] FOLDER", Args: Args(cobra.RangeArgs(1, 2)), RunE: none},
			&cobra.Command{Use: "many NAME...", Args: Args(cobra.MinimumNArgs(1)), RunE: none},
			&cobra.Command{Use: "revert NAME {SI --to TIME | --commit NUMBER}", Args: Args(cobra.RangeArgs(1, 2)), RunE: none},
		)
		var b bytes.Buffer
		root.SetErr(&b)
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(strings.Fields(strings.NewReplacer("--on", "--quiet", "--off", "--verbose").Replace(line)))
		code := Run(root, Environment{Getenv: os.Getenv})
		if want == "" {
			assert.Equal(t, OK, code, line)
			continue
		}
		assert.Equal(t, Usage, code, line)
		assert.Contains(t, b.String(), want, line)
	}
}

// An error has the code of its kind, and joined errors of several kinds have none of theirs.
func TestExitCodesOfErrors(t *testing.T) {
	away := &ExitError{Unreachable, errors.New("no answer")}
	for _, c := range []struct {
		err    error
		code   int
		stderr string
	}{
		{fmt.Errorf("m: %w", away), Unreachable, "m: no answer"},
		{errors.Join(fmt.Errorf("a: %w", away), fmt.Errorf("b: %w", away)), Unreachable, "a: no answer\nb: no answer"},
		{errors.Join(away, errors.New("another")), Failed, "no answer\nanother"},
		{fmt.Errorf("the outermost: %w", &ExitError{Conflict, fmt.Errorf("of: %w", away)}), Conflict, "the outermost: of: no answer"},
		{InterruptedError("nothing was changed"), Interrupted, "interrupted; nothing was changed"},
		{fmt.Errorf("m: %w", context.Canceled), Interrupted, "interrupted; do it again"},
	} {
		code, printed := program(func(*cobra.Command, []string) error { return c.err }, "work")
		assert.Equal(t, c.code, code, c.stderr)
		assert.Equal(t, "program: "+c.stderr+"\n", printed)
	}
}
