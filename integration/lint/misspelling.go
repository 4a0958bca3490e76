package main

import (
	"fmt"
	"go/token"
	"os"

	"github.com/golangci/misspell"
	"golang.org/x/tools/go/analysis"
)

// misspelling finds words in comments and texts that are often spelt wrong.
var misspelling = &analysis.Analyzer{
	Name: "misspell",
	Doc:  "find words that are often spelt wrong\n\nBy the list of github.com/golangci/misspell, British and American spelling alike.",
	Run:  findMisspellings,
}

func findMisspellings(pass *analysis.Pass) (any, error) {
	replacer := misspell.New()
	replacer.Compile()
	for _, syntax := range pass.Files {
		file := pass.Fset.File(syntax.FileStart)
		text, err := os.ReadFile(file.Name())
		if err != nil {
			return nil, fmt.Errorf("look for misspelt words: %w", err)
		}
		_, found := replacer.ReplaceGo(string(text))
		for _, d := range found {
			at := file.LineStart(d.Line) + token.Pos(d.Column)
			pass.Reportf(at, "%q is a misspelling of %q", d.Original, d.Corrected)
		}
	}
	return nil, nil
}
