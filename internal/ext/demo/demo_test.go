package demo_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/ext/demo"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func TestDemoEndsWithProof(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, demo.Run(context.Background(), demo.Options{Parts: ext.Parts(), Out: &out, Listen: "127.0.0.1:0", Once: true}), "%s", &out)
	for _, want := range []string{
		"2 added, 1 updated, 0 deleted",
		"0 added, 0 updated, 0 deleted",
		"1 deleted, 5 topics updated",
		"merged view equals the merge of the server's two maps",
	} {
		assert.Contains(t, out.String(), want)
	}
}

func TestDemoServesUntilItIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out := &notifier{until: "Still serving", seen: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- demo.Run(ctx, demo.Options{Parts: ext.Parts(), Out: out, Listen: "127.0.0.1:0"}) }()
	select {
	case <-out.seen:
	case err := <-done:
		t.Fatal("ended too early", err)
	}
	cancel()
	require.NoError(t, <-done)
}

// notifier closes seen when a text was written to it.
type notifier struct {
	until string
	seen  chan struct{}
	text  bytes.Buffer
	done  bool
}

func (n *notifier) Write(p []byte) (int, error) {
	n.text.Write(p)
	if !n.done && bytes.Contains(n.text.Bytes(), []byte(n.until)) {
		n.done = true
		close(n.seen)
	}
	return len(p), nil
}
