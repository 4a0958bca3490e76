package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
)

// Completion offers each word of every command, and each of its flags.
func TestCompletionKnowsEveryCommand(t *testing.T) {
	app := newParser().Model.Node
	offers := func(word string, line ...string) bool {
		return slices.ContainsFunc(candidates(app, line), func(c candidate) bool { return c.word == word && !strings.Contains(c.help, "\n") })
	}
	for _, leaf := range app.Leaves(true) {
		words := strings.Fields(leaf.Path())
		for i, word := range words {
			if !offers(word, append(slices.Clone(words[:i]), "")...) {
				t.Errorf("after %q, %s is not offered", words[:i], word)
			}
		}
		for _, flag := range leaf.Flags {
			if offered := offers("--"+flag.Name, append(slices.Clone(words), "--")...); offered == flag.Hidden {
				t.Errorf("%s: --%s is offered: %t", leaf.Path(), flag.Name, offered)
			}
		}
	}
}

// The command accepts the values that completion offers where the command itself checks them.
func TestOfferedValuesAreAccepted(t *testing.T) {
	app := newParser().Model.Node
	offered := func(flag string) (values []string) {
		for _, c := range candidates(app, []string{"up", flag, ""}) {
			values = append(values, c.word)
		}
		if len(values) < 2 {
			t.Errorf("up %s: %q is offered", flag, values)
		}
		return values
	}
	for _, level := range offered("--log-level") {
		for _, format := range offered("--log-format") {
			if faults := config.LogFaults(format, level); faults != nil {
				t.Error(faults)
			}
		}
	}
	for _, mode := range offered("--drift-mode") {
		rules := drift.DefaultRules()
		rules.Mode = mode
		for _, fault := range rules.Validate() {
			if fault.Key == "mode" {
				t.Error(fault)
			}
		}
	}
}
