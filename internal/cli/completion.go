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

// completesWithin is how long a shell waits for names.
const completesWithin = 2 * time.Second

// CompleteArguments has shells complete what the commands below root take. The words of their usage lines and flags say
// what that is: a NAME is one of those that names returns, FILE and FOLDER are paths, and of all else nothing is known.
// names is called in the environment, with the flags that are on the command line. What it cannot
// find out it leaves out: a shell shows no errors. cobra keeps what it is told of flags until the process ends, so a
// daemon does not call this for commands of others.
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

// severalNames is the word of flags that take names of what there is, with commas between them.
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

// OneOf says that the value of a flag is one of a few, which shells complete.
func OneOf(flags *pflag.FlagSet, flag string, all ...string) {
	_ = flags.SetAnnotation(flag, values, all) // it is there
}

// argumentsOf returns the words of a usage line behind the command, without the signs that say whether they may be left
// out or repeated: "sync [NAME...]" has "NAME...".
func argumentsOf(cmd *cobra.Command) (words []string) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		// flags, and what is instead of them
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

// afterComma returns the names behind those that are written already, with commas between them.
func afterComma(names []string, written string) (all []string) {
	before := written[:strings.LastIndexByte(written, ',')+1]
	for _, name := range without(names, strings.Split(before, ",")) {
		all = append(all, before+name)
	}
	return all
}
