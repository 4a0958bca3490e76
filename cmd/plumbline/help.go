package main

import "strings"

// examples returns the text below the description of a command: command lines that work as they
// stand.
func examples(lines ...string) string {
	return "Examples:\n\n  " + strings.Join(lines, "\n  ")
}
