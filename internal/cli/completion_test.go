package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// The words of usage lines and flags say what shells complete.
func TestCompletion(t *testing.T) {
	environment := map[string]string{"TMSHARE_PROGRAM_DATA": "there"}
	complete := func(args ...string) (words []string, directive string) {
		root := &cobra.Command{Use: "program"}
		run := func(*cobra.Command, []string) error { return nil }
		data := ""
		for _, use := range []string{"sync [NAME...]", "put NAME FILE", "history NAME [SUBJECT-IDENTIFIER]", "mirror [URL] FOLDER", "forget NAME SI... | forget NAME --all", "group"} {
			cmd := &cobra.Command{Use: use, RunE: run}
			cmd.Flags().StringVar(&data, "data", "", "`folder`")
			cmd.Flags().String("format", "", "`format`")
			OneOf(cmd.Flags(), "format", "xtm1", "xtm2.1")
			cmd.Flags().StringSlice("from", nil, "`names`")
			cmd.Flags().Int("number", 0, "a number")
			if use == "group" {
				cmd.AddCommand(&cobra.Command{Use: "show NAME", RunE: run})
			}
			root.AddCommand(cmd)
		}
		CompleteArguments(root, Environment{Getenv: func(name string) string { return environment[name] }}, func(context.Context, *cobra.Command) []string {
			if data == "there" {
				return []string{"egov", "libraries"}
			}
			return nil
		})
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, args...))
		assert.NoError(t, root.Execute())
		lines := strings.Fields(out.String())
		return lines[:len(lines)-1], lines[len(lines)-1]
	}
	const files, none, folders = ":0", ":4", ":16"
	for _, c := range []struct {
		line      string
		words     string
		directive string
	}{
		{"sync ", "egov libraries", none},
		{"sync egov ", "libraries", none},
		{"sync --data elsewhere ", "", none},
		{"put ", "egov libraries", none},
		{"put egov ", "", files},
		{"put egov x ", "", none},
		{"history egov ", "", none},
		{"mirror http://127.0.0.1/ ", "", folders},
		{"forget ", "egov libraries", none},
		{"forget egov ", "", none},
		{"sync --data ", "", folders},
		{"sync --format ", "xtm1 xtm2.1", none},
		{"sync --number ", "", none},
		{"sync --from ", "egov libraries", none},
		{"sync --from egov,", "egov,libraries", none},
	} {
		words, directive := complete(strings.Split(c.line, " ")...)
		assert.Equal(t, c.words, strings.Join(words, " "), c.line)
		assert.Equal(t, c.directive, directive, c.line)
	}
}
