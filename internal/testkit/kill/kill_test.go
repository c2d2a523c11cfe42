package kill

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func TestMain(m *testing.M) {
	Main(m, Tasks{
		"count": func(args []string) error {
			for i := range args {
				fmt.Println(i, args[i])
			}
			return nil
		},
		"stay": func([]string) error { fmt.Println("here"); select {} },
		"exit": func([]string) error { return Exit(3) },
		"fail": func([]string) error { return errors.New("no luck") },
	})
}

func TestProcessesEndByThemselvesOrAreKilled(t *testing.T) {
	p := Start(t, "count", "a", "b", "-c")
	line, ok := p.Line()
	assert.True(t, ok)
	assert.Equal(t, "0 a", line)
	assert.False(t, p.Wait())
	assert.Equal(t, []string{"1 b", "2 -c"}, p.Rest())

	p = Start(t, "stay")
	_, ok = p.Line()
	assert.True(t, ok)
	assert.True(t, p.Kill(0))
	_, ok = p.Line()
	assert.False(t, ok)

	assert.False(t, Start(t, "count").Kill(time.Minute), "it ends before, without a wait of a minute")
	assert.False(t, Start(t, "exit").Expect(3).Wait())
}

// A task that fails must not pass for one that was killed.
func TestTasksThatFailFailTheTest(t *testing.T) {
	for task, says := range map[string]string{"fail": "ended with status 1: no luck", "none": `no task "none"`, "exit": "status 3"} {
		recorded := &recorder{TB: t}
		done := make(chan bool)
		go func() { defer close(done); Start(recorded, task).Wait() }()
		<-done
		assert.Contains(t, recorded.fatal, says)
	}
}

type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
}
