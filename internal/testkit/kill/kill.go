// Package kill runs tasks in separate processes, so that tests can kill them at any instant.
//
// A process runs the test program itself, with the name of a task in its environment. So nothing must be built, and the
// race detector checks the process if it checks the test.
package kill

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// variable names the task, in the environment of a process.
const variable = "TMSHARE_TEST_TASK"

// Tasks are the tasks for processes of a test program, by name. A task receives the arguments of its process. The
// process ends with status 0, with that of an Exit, or with 1 and the error on its standard error.
type Tasks map[string]func(args []string) error

// Exit is the error of a task that ends its process with this status.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the tests, or a task where this process was started for one. A
// TestMain calls it.
func Main(m *testing.M, tasks Tasks) {
	name, ok := os.LookupEnv(variable)
	if !ok {
		os.Exit(m.Run())
	}
	task := tasks[name]
	if task == nil {
		task = func([]string) error { return fmt.Errorf("this test program has no task %q", name) }
	}
	err := task(os.Args[1:])
	var exit Exit
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &exit):
		os.Exit(int(exit))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Process is a task that runs. Its methods must not run at once, but for Signal.
type Process struct {
	t        testing.TB
	cmd      *exec.Cmd
	lines    *bufio.Scanner
	rest     []string
	failure  bytes.Buffer
	expected []int
	end      sync.Once
	killed   bool
}

// Start starts a task. It is killed when the test ends, at the latest.
func Start(t testing.TB, task string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(os.Args[0], args...), expected: []int{0}}
	p.cmd.Env = append(os.Environ(), variable+"="+task)
	p.cmd.Stderr = &p.failure
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	p.lines.Buffer(nil, 16<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Signal(); p.wait() })
	return p
}

// Expect adds statuses with which the task may end. Without it, only 0 is right.
func (p *Process) Expect(status ...int) *Process {
	p.expected = append(p.expected, status...)
	return p
}

// Line waits for a line of the task's output. It returns false at the end.
func (p *Process) Line() (string, bool) {
	ok := p.lines.Scan()
	return p.lines.Text(), ok
}

// Signal kills the process without waiting for that. It may be called at any time,
// more than once, and by any goroutine.
func (p *Process) Signal() { _ = p.cmd.Process.Kill() } // it may have ended

// Kill kills the process after a while, and reports whether it was killed: it may
// have ended before. The test fails if it ended with a status that is not expected.
func (p *Process) Kill(after time.Duration) bool {
	p.t.Helper()
	timer := time.AfterFunc(after, p.Signal)
	defer timer.Stop()
	return p.Wait()
}

// Wait waits for the end of the process, and reports whether it was killed.
func (p *Process) Wait() (killed bool) {
	p.t.Helper()
	p.wait()
	if status := p.cmd.ProcessState.ExitCode(); !p.killed && !slices.Contains(p.expected, status) {
		p.t.Fatalf("%v ended with status %d: %s", p.cmd.Args[1:], status, p.failure.String())
	}
	return p.killed
}

// Status waits for the end of the process, and returns its status: below 0 where it was killed.
func (p *Process) Status() int { p.wait(); return p.cmd.ProcessState.ExitCode() }

func (p *Process) wait() {
	p.end.Do(func() {
		for p.lines.Scan() {
			p.rest = append(p.rest, p.lines.Text())
		}
		_ = p.cmd.Wait()
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		p.killed = ok && status.Signaled()
	})
}

// Rest returns the lines that Line had not returned when the process ended.
func (p *Process) Rest() []string { p.wait(); return p.rest }

// Failure returns the standard error of the process.
func (p *Process) Failure() string { p.wait(); return strings.TrimSpace(p.failure.String()) }
