package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// advice matches the remedy in a message: an imperative after a mark, or a command in quotation marks.
var advice = regexp.MustCompile(`(?is)([;:,.(] |and )(or )?(give|name|write|make|check|use|look|stop|start|add|leave|choose|take|try|say|put|begin|free|set|raise|fetch|find|allow|follow|subscribe|change|run)\b|"tmshare-|"find"|--[a-z-]+ (names|FILE)|lists (those|what)|there are:? `)

// failing are command lines that fail, by program. The text after => must be in the message. In them, FILE is a map,
// FOLDER a folder, NOFILE and NOFOLDER do not exist, USED is an address with a listener, and URL is that of a server
// with the map lib.
var failing = map[string]string{
	"tmshare-server": `
import lib NOFILE => NOFILE
import lib FOLDER => FOLDER
import lib => FILE is missing
import => NAME and FILE are missing
import lib FILE more => "more" is left over
import nope FILE => "nope"
import a/b FILE --create => "a/b"
import lib FILE --server http://127.0.0.1:1 => 127.0.0.1:1
import lib FILE --server nohost => "nohost"
import lib FILE --token-file NOFILE => NOFILE
import lib FILE --token-file FOLDER => FOLDER
import lib FILE --max-delete some => "some"
topics put lib NOFILE => NOFILE
topics put nope FILE => "nope"
topics get lib nope => "nope"
topics get lib http://e/none => http://e/none
topics get nope http://e/a => "nope"
topics delete lib nope => "nope"
topics gett lib x => tmshare-server topics get
topics nothing => "nothing"
history lib nope => "nope"
history lib http://e/none => http://e/none
history nope => "nope"
log nope => "nope"
log lib --limit -1 => --limit -1
log lib --since noon => "noon"
export nope => "nope"
export lib FOLDER => FOLDER
export lib NOFOLDER/x.xtm => NOFOLDER/x.xtm
export lib x.docx => x.docx
export lib --at 2999-01-01 => 2999-01-01
diff lib => --at
diff nope --at 2026-01-01 => "nope"
revert lib => --commit
revert lib --commit 777777 => 777777
revert lib nope --to 2026-01-01 => "nope"
revert lib http://e/a --to 2026-01-01 --max-delete 5 => --max-delete
collections show nope => "nope"
collections sett => collections set
collections set nope --title x => "nope"
collections set lib => setting
collections set lib --keep-for -5h => --keep-for -5h
collections set lib --document-size -1 => --document-size -1
collections set lib --document-size 999999 => --document-size
collections set lib --changes-per-list 999999 => --changes-per-list
collections set lib --record-formats xtm9 => "xtm9"
collections set lib --sign NOFILE => --sign
collections set lib --mirrors nohost => "nohost"
collections set lib --via nohost => "nohost"
collections delete nope --yes => "nope"
collections delete lib => --yes
snapshot nope => "nope"
snapshot => NAME is missing
gc nope => "nope"
derive x --from nope => "nope"
derive x => --from
derive x --from lib --expand --data NOFOLDER => NOFOLDER
key generate FILE --name x => FILE
key generate NOFOLDER/key --name x => NOFOLDER/key
key show NOFILE => NOFILE
serve --listen 18432 => 18432
serve --listen USED => USED
serve --data FILE => FILE
serve --map a=NOFILE => NOFILE
serve --map a=FOLDER => FOLDER
serve --token-file NOFILE => NOFILE
serve --token-file FOLDER => FOLDER
serve --token-file EMPTY => EMPTY
serve --read-token-file a=NOFILE => NOFILE
serve --tls-cert NOFILE => --tls-key
serve --tls-cert NOFILE --tls-key NOFILE => NOFILE
serve --tls-cert FILE --tls-key FILE => FILE
serve --metrics-listen 18432 => 18432
serve --metrics-listen USED => USED
serve --keep-for -5h => --keep-for -5h
serve --store nope => --store
serve --store postgres://x@127.0.0.1:1/x => 127.0.0.1:1
migrate => --store
demo --once --listen 18432 => 18432
demo --once --listen USED => USED
backup x --data NOFOLDER => NOFOLDER
restore NOFILE => NOFILE
restore FILE => FILE
restore FOLDER => FOLDER
check --data NOFOLDER => NOFOLDER
check --data FILE => FILE
move NOFOLDER x => NOFOLDER
nothing => "nothing"`,
	"tmshare-client": `
subscribe => URL is missing
subscribe nohost => "nohost"
subscribe http://127.0.0.1:1/ => 127.0.0.1:1
subscribe URL/topicmaps/nope => "nope"
subscribe URL/topicmaps/lib --as other --token-file NOFILE => NOFILE
subscribe URL/topicmaps/lib --as other --key x => "x"
subscribe URL/topicmaps/lib --as other --format turtle => Turtle
replicate http://127.0.0.1:1/ => 127.0.0.1:1
unsubscribe nope => "nope"
sync nope => "nope"
sync --quiet --verbose => --quiet and --verbose
sync --max-entries -1 => --max-entries -1
status nope => "nope"
status --data NOFOLDER => NOFOLDER
status --data FILE => FILE
verify nope => "nope"
replace => NAME... is missing
replace nope => "nope"
retry nope => "nope"
forget nope x => "nope"
forget lib => --all
forget lib http://e/x => http://e/x
trust nope => "nope"
log nope => "nope"
log --since noon => "noon"
topic nope => "nope"
topic http://e/none => http://e/none
find => WORDS is missing
find x --server http://127.0.0.1:1 --map lib => 127.0.0.1:1
find x --server URL --map nope => "nope"
export NOFOLDER/x.xtm => NOFOLDER
export FOLDER => FOLDER
export x.docx => x.docx
convert NOFILE x.xtm => NOFILE
convert FOLDER x.xtm => FOLDER
convert FILE FOLDER/ => FOLDER
convert FILE NOFOLDER/x.xtm => NOFOLDER/x.xtm
convert FILE x.docx => x.docx
convert FILE x.xtm --root NOFOLDER --no-merge => --no-merge and --root
convert FILE x.xtm --base x => "x"
convert FILE x.xtm --graph x => "x"
cxtm NOFILE => NOFILE
validate NOFILE => NOFILE
stats NOFILE => NOFILE
diff FILE FILE --limit -1 => --limit -1
diff FILE NOFILE => NOFILE
diff FILE => B is missing
harvest => FOLDER is missing
harvest nohost x => "nohost"
harvest http://127.0.0.1:1/ x => 127.0.0.1:1
harvest URL/topicmaps/nope x => "nope"
harvest URL/topicmaps/lib/records FILE => FILE
mirror nohost x => "nohost"
mirror URL FILE => FILE
watch --listen 18432 => 18432
watch --listen USED => USED
watch --interval -5s => --interval -5s
ui --listen 18432 => 18432
ui --listen USED => USED
ui --listen 0.0.0.0:0 => loopback
edit => import
edit nothing => "nothing"
edit ad => edit add
edit import NOFILE => NOFILE
edit import FOLDER => FOLDER
backup NOFOLDER/x => NOFOLDER
restore NOFILE => NOFILE
check --data NOFOLDER => NOFOLDER
move NOFOLDER x => NOFOLDER
subscriptions --data NOFOLDER => NOFOLDER
nothing => "nothing"`,
}

// The message for a typical failure of each command names the object, and the remedy.
func TestFailuresSayWhatToDo(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	p := launch(t, maps.Libraries)
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer used.Close()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "map.xtm"), maps.EGov, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	words := strings.NewReplacer("NOFILE", "missing.xtm", "NOFOLDER", "nowhere", "FOLDER", "folder", "EMPTY", "empty", "USED", used.Addr().String(), "URL", "http://"+p.addr)
	asArgument := func(word string) string {
		if word == "FILE" || strings.HasSuffix(word, "=FILE") {
			return strings.Replace(word, "FILE", "map.xtm", 1)
		}
		return words.Replace(word)
	}
	run := func(program string, args ...string) (string, error) {
		cmd := exec.Command("timeout", append([]string{"30", program}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "TMSHARE_BASE_URL=", "TMSHARE_SERVER=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	_, err = run("tmshare-client", "subscribe", "http://"+p.addr+"/topicmaps/lib")
	require.NoError(t, err)
	_, err = run("tmshare-client", "sync")
	require.NoError(t, err)
	for program, lines := range failing {
		for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
			given, named, ok := strings.Cut(line, " => ")
			require.True(t, ok, line)
			var args []string
			for _, word := range strings.Fields(given) {
				args = append(args, asArgument(word))
			}
			if asks := program == "tmshare-server" && !strings.Contains(given, "--server"); asks && strings.Contains(" import topics history log export diff revert collections snapshot gc derive ", " "+args[0]+" ") {
				if args[0] != "topics" || args[1] != "gett" && args[1] != "nothing" {
					args = append(args, "--server", "http://"+p.addr)
				}
			}
			if args[0] == "serve" && !strings.Contains(given, "--listen") {
				args = append(args, "--listen", "127.0.0.1:0")
			}
			out, err := run(program, args...)
			var exit *exec.ExitError
			if !assert.Truef(t, errors.As(err, &exit) && !slices.Contains([]int{cli.Quarantined, cli.Differs}, exit.ExitCode()), "%s %s: %v: %s", program, given, err, out) {
				continue
			}
			if strings.HasPrefix(named, "FILE is") || strings.HasPrefix(named, "NAME and") || strings.HasPrefix(named, "FOLDER is") || strings.HasPrefix(named, "URL is") {
				assert.Contains(t, out, named, given)
			} else {
				assert.Contains(t, out, asArgument(named), "%s %s names what it is about", program, given)
			}
			assert.Regexp(t, advice, out, "%s %s says what to do", program, given)
			assert.NotRegexp(t, `\b(KeepFor|DocumentSize|MaxBody|BaseURL|panic|goroutine)\b`, out, given)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "state", "tmshare", "server"))
	require.NoError(t, err)
	assert.Empty(t, left, "what fails leaves no data folder")
}
