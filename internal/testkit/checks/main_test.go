package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func TestReportEndsWithWhatDidNotRun(t *testing.T) {
	const events = `{"Action":"output","Package":"p","Test":"TestA","Output":"    testenv.go:30: NOT CHECKED: there is no shared/maps/one.xtm in any folder above\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    a_test.go:12: NOT CHECKED: there is no shared/schemas in any folder above\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    a_test.go:14: NOT RUN: it needs a browser: it runs with -all\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p","Test":"TestD"}
{"Action":"output","Package":"p","Test":"TestE","Output":"    a_test.go:16: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestE"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"output","Package":"q","Output":"ok  \tq\t0.1s\n"}
{"Action":"pass","Package":"q"}
`
	var b strings.Builder
	require.NoError(t, report(&b, strings.NewReader(events)))
	assert.Equal(t, `    a_test.go:16: wrong
FAIL	p	0.1s
ok  	q	0.1s

1 checks passed, 1 failed, 3 did not run:
    2  NOT CHECKED: there is no shared/… in any folder above
    1  NOT RUN: it needs a browser: it runs with -all
`, b.String())
	assert.ErrorContains(t, report(&b, strings.NewReader("no event\n")), "no event")
}
