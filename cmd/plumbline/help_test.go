package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command has examples in its help text, and each is a command line that the command accepts.
func TestExamplesOfHelpAreCommandLines(t *testing.T) {
	for _, leaf := range newParser().Model.Leaves(true) {
		lines := examplesOf(leaf)
		if len(lines) == 0 {
			t.Errorf("%s --help has no example", leaf.Path())
		}
		for _, line := range lines {
			args := words(t, line)
			if args[0] != "plumbline" {
				t.Errorf("%s: an example begins with %s", leaf.Path(), args[0])
				continue
			}
			parsed, err := newParser(args[1:]...).Parse(args[1:])
			if err != nil {
				t.Errorf("%s: %v", line, err)
			} else if parsed.Selected().Path() != leaf.Path() {
				t.Errorf("%s: is an example of %s, and runs %s", line, leaf.Path(), parsed.Selected().Path())
			}
		}
	}
}

// examplesOf returns the lines below "Examples:".
func examplesOf(node *kong.Node) (lines []string) {
	_, below, _ := strings.Cut(node.Detail, "Examples:\n")
	for line := range strings.Lines(strings.ReplaceAll(below, "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// words returns the words of the first command of a line, as a shell reads them.
func words(t *testing.T, line string) []string {
	t.Helper()
	for _, end := range []string{" | ", " > ", " < "} {
		if at := strings.LastIndex(line, end); at >= 0 && !strings.ContainsAny(line[at:], `'"`) { // not within quotes
			line = line[:at]
		}
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}
