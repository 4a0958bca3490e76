package main

import (
	"go/ast"

	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
)

// unchecked is errcheck without what needs no check.
var unchecked = &analysis.Analyzer{
	Name:       "errcheck",
	Doc:        "find errors that nothing looks at\n\nA deferred Close needs no check: it follows reading. What was written is closed, and the error looked at, before the end.",
	ResultType: errcheck.Analyzer.ResultType,
	Run:        findUnchecked,
}

// cannotFail are calls whose error says nothing, or reaches nobody.
var cannotFail = []string{
	"fmt.Fprint(*os.File)", "fmt.Fprintf(*os.File)", "fmt.Fprintln(*os.File)", // standard error: there is nobody left to be told. Files are written with Write
	"fmt.Fprint(*text/tabwriter.Writer)", "fmt.Fprintf(*text/tabwriter.Writer)", "fmt.Fprintln(*text/tabwriter.Writer)", // in memory, until Flush, whose error is looked at
	"fmt.Fprint(net/http.ResponseWriter)", "fmt.Fprintf(net/http.ResponseWriter)", // servers of tests
	"fmt.Fprint(hash.Hash)", "fmt.Fprintf(hash.Hash)", // hashes do not fail
}

func init() {
	errcheck.DefaultExcludedSymbols = append(errcheck.DefaultExcludedSymbols, cannotFail...)
}

func findUnchecked(pass *analysis.Pass) (any, error) {
	type line struct {
		file   string
		number int
	}
	closed := map[line]bool{}
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			if d, ok := n.(*ast.DeferStmt); ok {
				if f, ok := d.Call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Close" {
					at := pass.Fset.Position(d.Pos())
					closed[line{at.Filename, at.Line}] = true
				}
			}
			return true
		})
	}
	filtered := *pass
	filtered.Report = func(d analysis.Diagnostic) {
		if at := pass.Fset.Position(d.Pos); !closed[line{at.Filename, at.Line}] {
			pass.Report(d)
		}
	}
	return errcheck.Analyzer.Run(&filtered)
}
