package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completesWithin is the time limit for names in a shell.
const completesWithin = 2 * time.Second

// CompleteArguments makes shells complete the arguments of the commands below root, by the words of their usage lines
// and flags: a NAME is one of those that names returns, FILE and FOLDER are paths, others are not completed. It calls
// names with the environment and the flags on the command line. It ignores errors, because shells show none. cobra
// keeps the registrations of flags until the process ends, so a daemon must not call this for commands of others.
func CompleteArguments(root *cobra.Command, env Environment,
	names func(context.Context, *cobra.Command) []string) {
	known := func(cmd *cobra.Command) []string {
		if Settle(cmd, env, io.Discard) != nil {
			return nil
		}
		ctx, stop := context.WithTimeout(context.Background(), completesWithin)
		defer stop()
		return names(ctx, cmd)
	}
	for _, cmd := range root.Commands() {
		CompleteArguments(cmd, env, names)
	}
	if words := argumentsOf(root); root.ValidArgsFunction == nil && root.Runnable() && !root.HasAvailableSubCommands() {
		root.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			word := wordAt(words, len(args))
			if word != "NAME" {
				return completeWord(word)
			}
			return without(known(cmd), args), cobra.ShellCompDirectiveNoFileComp
		}
	}
	root.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { completeFlag(root, f, known) })
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { completeFlag(root, f, known) })
}

// severalNames is the word of flags with comma-separated existing names.
const severalNames = "names"

// completeFlag has shells complete the value of a flag.
func completeFlag(cmd *cobra.Command, f *pflag.Flag, known func(*cobra.Command) []string) {
	if f.Value.Type() == "bool" {
		return
	}
	word, _ := pflag.UnquoteUsage(f)
	_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion,
		cobra.ShellCompDirective) { // it is there
		if all := f.Annotations[values]; all != nil {
			return all, cobra.ShellCompDirectiveNoFileComp
		}
		if word == severalNames {
			return afterComma(known(cmd), toComplete), cobra.ShellCompDirectiveNoFileComp
		}
		return completeWord(strings.ToUpper(word))
	})
}

// values is the annotation of flags whose value is one of a few.
const values = "tmshare_values"

// OneOf sets the possible values of a flag, which shells complete.
func OneOf(flags *pflag.FlagSet, flag string, all ...string) {
	_ = flags.SetAnnotation(flag, values, all) // it is there
}

// argumentsOf returns the words of a usage line after the command, without the signs for optional and repeated ones:
// "sync [NAME...]" has "NAME...".
func argumentsOf(cmd *cobra.Command) (words []string) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		// flags, and their alternatives
		if strings.ContainsAny(word, "-{|") && word != "SUBJECT-IDENTIFIER" && word != "FILE|DIR" && word != "FILE|FOLDER" {
			break
		}
		word = strings.NewReplacer("[", "", "]...", "...", "]", "", "…", "...").Replace(word)
		words = append(words, word)
	}
	return words
}

// wordAt returns the word for the argument number i; the last one may be repeated.
func wordAt(words []string, i int) string {
	if n := len(words); n > 0 && i >= n-1 && strings.HasSuffix(words[n-1], "...") {
		i = n - 1
	}
	if i >= len(words) {
		return ""
	}
	return strings.TrimSuffix(words[i], "...")
}

func completeWord(word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch word {
	case "FOLDER", "DIR":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case "FILE", "NAME=FILE", "FILE|DIR", "FILE|FOLDER", "KEYFILE", "KEY FILE", "IN", "OUT", "A", "B":
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// without returns the names that are not given yet.
func without(names, given []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(given, name) })
}

// afterComma returns completions that add names to the comma-separated ones already written.
func afterComma(names []string, written string) (all []string) {
	before := written[:strings.LastIndexByte(written, ',')+1]
	for _, name := range without(names, strings.Split(before, ",")) {
		all = append(all, before+name)
	}
	return all
}
