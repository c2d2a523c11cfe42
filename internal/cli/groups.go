package cli

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Groups of commands, which the help of a program shows in this order.
const (
	Everyday   = "Everyday"
	Back       = "Looking back"
	Files      = "Files and folders"
	Operations = "Operations"
)

// In puts commands into a group of the help.
func In(group string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.GroupID = group
	}
	return commands
}

// Hidden hides commands that have other names by now.
func Hidden(commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.Hidden = true
	}
	return commands
}

// addGroups adds the groups that have commands to the help.
func addGroups(root *cobra.Command) {
	root.SetHelpCommandGroupID(Operations)
	root.SetCompletionCommandGroupID(Operations)
	used := func(group string) bool {
		return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.GroupID == group })
	}
	for _, group := range []string{Everyday, Back, Files, Operations} {
		if group == Operations || used(group) {
			root.AddGroup(&cobra.Group{ID: group, Title: group + ":"})
		}
	}
}

// commands lists the commands of both programs, a line each, with descriptions.
//
//go:embed commands.txt
var commands string

// ofTheOther returns the error that the other program, or another command, has an unknown command; else nil.
func ofTheOther(root *cobra.Command, unknown error) (other error) {
	var name string
	if _, err := fmt.Sscanf(unknown.Error(), "unknown command %q", &name); err != nil {
		return nil
	}
	var below []string
	for _, c := range root.Commands() {
		if sub, _, err := c.Find([]string{name}); err == nil && sub != c {
			below = append(below, strconv.Quote(sub.CommandPath()))
		}
	}
	if len(below) > 0 {
		other = fmt.Errorf("unknown command %q for %q; did you mean %s?", name, root.Name(), strings.Join(below, " or "))
	}
	for line := range strings.Lines(commands) {
		command, does, _ := strings.Cut(strings.TrimSpace(line), ": ")
		program, word, _ := strings.Cut(command, " ")
		if word == name && program == root.Name() { // of an extension that is left out
			return nil
		}
		if word == name {
			other = fmt.Errorf("%s is a command of %s: %s\nTry \"%s --help\"", word, program, does, command)
		}
	}
	return other
}
