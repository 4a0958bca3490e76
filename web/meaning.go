package web

import (
	_ "embed"
	"strings"
)

//go:embed meanings.txt
var meaningsText string

// readMeanings returns when each violation, finding and warning of a trace is reported, by its type: the words of
// docs/FINDINGS.md.
func readMeanings() map[string]string {
	of := map[string]string{}
	for line := range strings.Lines(meaningsText) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		of[kind] = text
	}
	return of
}
