package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// operatorsDocuments have commands that are typed as they stand; words in capitals stand for the
// reader's own.
var operatorsDocuments = []string{"../../docs/RUNBOOK.md", "../../docs/OPERATIONS.md"}

// commandsOf returns the command lines of a document: indented lines that begin with plumbline.
func commandsOf(t testing.TB, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "    "); ok && strings.HasPrefix(command, "plumbline ") {
			command, _, _ = strings.Cut(command, "   #")
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

// Every command of the operators' documents is a command line that plumbline accepts.
func TestCommandsOfOperatorsDocumentsExist(t *testing.T) {
	parser, commands := newParser(), 0
	inText := regexp.MustCompile("`plumbline ([a-z][a-z -]*)")
	for _, path := range operatorsDocuments {
		for _, line := range commandsOf(t, path) {
			commands++
			args := words(t, line)[1:]
			if _, err := newParser(args...).Parse(args); err != nil {
				t.Errorf("%s: %s: %v", path, line, err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range inText.FindAllStringSubmatch(string(text), -1) {
			node := parser.Model.Node
			for word := range strings.FieldsSeq(match[1]) {
				for _, child := range node.Children {
					if child.Name == word {
						node = child
						break
					}
				}
			}
			if node == parser.Model.Node {
				t.Errorf("%s: %s`: there is no such command", path, match[0])
			}
		}
	}
	if commands < 30 {
		t.Errorf("%d commands found", commands)
	}
}

// queries runs every plumbline sql of documents against the machine on a data directory:
//
//	queries DIR DOCUMENT…
func queries(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: queries DIR DOCUMENT…")
	}
	asked, query := 0, regexp.MustCompile(`^    plumbline sql (?:"(.*)"|'(.*)')`)
	for _, document := range args[1:] {
		text, err := os.ReadFile(document)
		ts.Check(err)
		for line := range strings.Lines(string(text)) {
			if match := query.FindStringSubmatch(line); match != nil {
				asked++
				if err := ts.Exec("plumbline", "sql", "--data", args[0], match[1]+match[2]); err != nil {
					ts.Fatalf("%s: %s: %v", document, match[0], err)
				}
			}
		}
	}
	if asked < 8 {
		ts.Fatalf("%d queries found", asked)
	}
}

// The systemd unit of up starts it with a command line that it accepts, with its data in the
// unit's state directory.
func TestUnitOfUp(t *testing.T) {
	text, err := os.ReadFile("../../deploy/systemd/plumbline.service")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/(plumbline up .*)$`).FindSubmatch(text)
	if match == nil {
		t.Fatal("the unit does not start plumbline up")
	}
	parsed, err := newParser().Parse(words(t, string(match[1]))[1:])
	if err != nil {
		t.Fatalf("%s: %v", match[1], err)
	}
	if got := parsed.Selected().Path(); got != "up" {
		t.Errorf("the unit runs %s", got)
	}
	for _, setting := range []string{"--data /var/lib/plumbline ", "\nStateDirectory=plumbline\n", "\nRestart=on-failure\n", "\nRestartPreventExitStatus=2\n", "\nStartLimitIntervalSec=0\n", "\nKillMode=mixed\n"} {
		if !strings.Contains(string(text), setting) {
			t.Errorf("the unit lacks %q", strings.TrimSpace(setting))
		}
	}
}
