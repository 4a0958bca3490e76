package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/config"
)

// Every command has a page or a part of one, with its arguments, flags and examples.
func TestManPages(t *testing.T) {
	dir, app := filepath.Join(t.TempDir(), "man1"), newParser().Model.Node
	if err := (&manCommand{Dir: dir}).Run(&console{}); err != nil {
		t.Fatal(err)
	}
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	overview := page("plumbline")
	for _, leaf := range app.Leaves(true) {
		words := strings.Fields(leaf.Path())
		own := page("plumbline-" + words[0])
		_, lines, _ := strings.Cut(leaf.Detail, config.ExamplesHeading)
		expected := []string{leaf.FullPath(), leaf.Help}
		for line := range strings.Lines(lines) {
			expected = append(expected, strings.TrimSpace(line))
		}
		for _, flag := range leaf.Flags {
			expected = append(expected, flag.Summary(), flag.Help)
		}
		for _, argument := range leaf.Positional {
			expected = append(expected, argument.Help)
		}
		for _, text := range expected {
			if !strings.Contains(own, escapeRoff(text)) {
				t.Errorf("the page of %s lacks %q", words[0], text)
			}
		}
		if !strings.Contains(overview, escapeRoff(leaf.FullPath())+`"`+"\n"+escapeRoff(leaf.Help)+"\n") {
			t.Errorf("plumbline(1) lacks %s", leaf.FullPath())
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(pages) != len(app.Children)+1 {
		t.Errorf("%d pages for %d commands: %v", len(pages), len(app.Children), err)
	}
	t.Run("groff", func(t *testing.T) { typeset(t, pages) })
}

// typeset requires that groff reads the pages without a warning, and shows an example as it is typed.
func typeset(t *testing.T, pages []string) {
	t.Helper()
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff is not installed: apt-get install groff")
	}
	var faults bytes.Buffer
	command := exec.CommandContext(t.Context(), "groff", slices.Concat([]string{"-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=400n"}, pages)...)
	command.Stderr = &faults
	text, err := command.Output()
	if err != nil || faults.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, &faults)
	}
	for _, want := range []string{
		"plumbline card revoke ac-buyer-1 --reason 'the agent is retired'",
		`--bounded search,purchase --forbidden share_payment_data --escalate 'amount > 100 # the manager approves'`,
		"\nEXIT STATUS\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the pages do not show %q", want)
		}
	}
}
