// Package kvtest holds the contract that every engine of package kv keeps: [Run] checks it
// rule by rule, [Histories] by random changes against a map.
package kvtest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

// Run checks each rule with an engine of its own. open opens one without rows.
func Run(t *testing.T, open func(t *testing.T) kv.Engine) {
	for _, group := range []struct {
		name  string
		rules []rule
	}{{"reading", readingRules}, {"many", manyRules}, {"writing", writingRules}, {"sharing", sharingRules},
		{"narrow", narrowRules}, {"ending", endingRules}} {
		require.NotEmpty(t, group.rules)
		for _, r := range group.rules {
			t.Run(group.name+"/"+r.name, func(t *testing.T) {
				e := open(t)
				t.Cleanup(func() { require.NoError(t, e.Close()) })
				r.check(&checker{t, e})
			})
		}
	}
}

type rule struct {
	name  string
	check func(*checker)
}

type checker struct {
	*testing.T
	kv.Engine
}

// tester is the part of a test that helpers need: *rapid.T has it too.
type tester interface {
	require.TestingT
	Helper()
}

// Update runs f and commits its changes if there was no other commit since f began to read. Otherwise it tries again.
func Update(ctx context.Context, e kv.Engine, f func(kv.Reader, kv.Writer) error) error {
	for {
		err := updateOnce(ctx, e, f)
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

func updateOnce(ctx context.Context, e kv.Engine, f func(kv.Reader, kv.Writer) error) error {
	r, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := e.Begin(ctx, r.Version())
	if err != nil {
		return err
	}
	defer w.Cancel()
	if err := f(r, w); err != nil {
		return err
	}
	return w.Commit()
}

// set commits rows, given as key and value in turn; "-" deletes.
func set(t tester, e kv.Engine, rows ...string) {
	t.Helper()
	require.NoError(t, Update(context.Background(), e, func(_ kv.Reader, w kv.Writer) error { return write(w, rows...) }))
}

func write(w kv.Writer, rows ...string) error {
	for i := 0; i < len(rows); i += 2 {
		err := w.Put([]byte(rows[i]), []byte(rows[i+1]))
		if rows[i+1] == "-" {
			err = w.Delete([]byte(rows[i]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func snapshot(t tester, e kv.Engine) kv.Reader {
	t.Helper()
	r, err := e.Snapshot(context.Background())
	require.NoError(t, err)
	return r
}

func version(t tester, e kv.Engine) kv.Version {
	t.Helper()
	v, err := e.Version(context.Background())
	require.NoError(t, err)
	return v
}

// rows returns the present rows with a prefix, as set takes them.
func rows(t tester, e kv.Engine, prefix string) []string {
	t.Helper()
	r := snapshot(t, e)
	defer r.Close()
	return list(t, r.Range([]byte(prefix), nil, false))
}

// list returns the rows of an iteration, in the form for set.
func list(t tester, all iter.Seq2[kv.Row, error]) []string {
	t.Helper()
	list := []string{}
	for r, err := range all {
		require.NoError(t, err)
		list = append(list, string(r.Key), string(r.Value))
	}
	return list
}
