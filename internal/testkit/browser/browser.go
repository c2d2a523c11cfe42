// Package browser drives a real browser, for tests: Debian's Chromium, without a window.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Browser is a tab of a browser, with which a person looks at pages. Its methods fail the test.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// Start starts a browser, and closes it after the test. If none is installed, it skips the test, and names the skipped
// checks.
func Start(t testing.TB) *Browser {
	t.Helper()
	testenv.OnlyWithAll(t, "it needs a browser")
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("NOT CHECKED: pages in a real browser: Chromium is not installed (Debian: chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.Flag("no-sandbox", true))
	}
	ctx, end := context.WithTimeout(t.Context(), 10*time.Minute)
	ctx, endProcess := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(func() {
		endProcess()
		end()
	})
	return open(t, ctx)
}

// Person returns a tab of the same browser with cookies of its own. It is closed after the test t. A browser takes
// about a second to start, so tests share one.
func (b *Browser) Person(t testing.TB) *Browser {
	t.Helper()
	return open(t, b.ctx, chromedp.WithNewBrowserContext())
}

// Tab opens another tab for the same person.
func (b *Browser) Tab() *Browser {
	b.t.Helper()
	return open(b.t, b.ctx)
}

// open opens a tab, and closes it with the test.
func open(t testing.TB, ctx context.Context, options ...chromedp.ContextOption) *Browser {
	t.Helper()
	ctx, end := chromedp.NewContext(ctx, options...)
	t.Cleanup(end)
	b := &Browser{t: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, log.Enable, cdp.Empty{})
		return err
	})))
	entries := chromedp.Events(ctx, log.EntryAdded)
	go func() {
		for e, err := range entries {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
			b.mu.Unlock()
		}
	}()
	b.View(1000, false)
	return b
}

// Complaints returns the messages in the browser's console, such as scripts blocked by the content security policy,
// except responses with an error status.
func (b *Browser) Complaints() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		if !strings.Contains(c, "the server responded with a status of") {
			all = append(all, c)
		}
	}
	return all
}

// View sets the width of the window, and whether the person prefers dark colours.
func (b *Browser) View(width int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	require.NoError(b.t,
		chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 900),
			chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
				})
				return err
			})))
}

// loads waits until the steps have loaded a page, and returns its status.
func (b *Browser) loads(steps ...chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, time.Minute)
	defer end()
	answer, err := chromedp.RunResponse(ctx, steps...)
	require.NoError(b.t, err, "no page is loaded")
	return int(answer.Status)
}

// Open goes to a URL, as if it was typed into the address bar, and returns the status of the page.
func (b *Browser) Open(url string) int {
	b.t.Helper()
	return b.loads(chromedp.Navigate(url))
}

// Visit goes to a URL. The page must exist.
func (b *Browser) Visit(url string) {
	b.t.Helper()
	require.Equal(b.t, http.StatusOK, b.Open(url), url)
}

// Back goes to the previous page, as the button of the browser does. A page sent by a form is shown unchanged.
func (b *Browser) Back() {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.NavigateBack()))
}

// Forget takes all cookies away, as time does.
func (b *Browser) Forget() {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.ClearBrowserCookies, cdp.Empty{})
		return err
	})))
}

// Follow clicks the first link of the content with a text.
func (b *Browser) Follow(text string) {
	b.t.Helper()
	require.Equal(b.t, http.StatusOK,
		b.loads(b.click("link",
			`[...document.querySelectorAll("main a, nav a, header a")].find(e => e.textContent.trim() === `+quoted(text)+`)`)),
		text)
}

// Press clicks the button with a text, and returns the status of the page that it leads to.
func (b *Browser) Press(text string) int {
	b.t.Helper()
	return b.loads(b.click("button",
		`[...document.querySelectorAll("button:not([aria-hidden]), input[type=submit]")]`+
			`.find(e => (e.textContent || e.value).trim() === `+quoted(text)+`)`))
}

// click clicks the element of an expression as a person does. Errors contain what.
func (b *Browser) click(what, expression string) chromedp.Action[chromedp.Void] {
	b.t.Helper()
	require.True(b.t, Eval[bool](b, "!!("+expression+")"), "%s has no such %s: %s", b.URL(), what, expression)
	return chromedp.Click(chromedp.JSPath(expression))
}

// Fill types text into the first field with a label, replacing its content. The content of a field within its label is
// not part of the label.
func (b *Browser) Fill(label, text string) {
	b.t.Helper()
	field := `[...document.querySelectorAll("label")].filter(e => [...e.childNodes].filter(n => n.nodeType === 3)` +
		`.map(n => n.textContent).join("").trim() === ` + quoted(label) + `).map(e => e.control)[0]`
	require.True(b.t, Eval[bool](b, "!!("+field+")"), "%s has no field %q", b.URL(), label)
	require.True(b.t,
		Eval[bool](b, "(f => { "+unfold+"; f.focus(); f.select(); return document.activeElement === f })("+field+")"),
		"the field %q cannot be written into", label)
	b.Keys(text)
}

// unfold opens the closed details element around a field f.
const unfold = `f.closest("details:not([open])")?.querySelector("summary").click()`

// Keys presses keys in the focused element.
func (b *Browser) Keys(keys string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.KeyEvent(keys)))
}

// Eval returns the value of an expression in the page. The content security policy does not apply to it.
func Eval[T any](b *Browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

// URL returns the address of the page.
func (b *Browser) URL() string {
	b.t.Helper()
	return Eval[string](b, "location.href")
}

// Title returns the main heading of the page.
func (b *Browser) Title() string {
	b.t.Helper()
	return Eval[string](b, `document.querySelector("h1").innerText`)
}

// Text returns the text of the page, as it is seen.
func (b *Browser) Text() string {
	b.t.Helper()
	return Eval[string](b, "document.body.innerText")
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Picture returns the window as PNG.
func (b *Browser) Picture() []byte {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	return picture
}

// Enter presses the Enter key in the focused element, and returns the status of the loaded page.
func (b *Browser) Enter() int {
	b.t.Helper()
	return b.loads(chromedp.KeyEvent("\r"))
}
