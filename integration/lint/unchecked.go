package main

import (
	"go/ast"

	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
)

// unchecked is errcheck without the calls that need no check.
var unchecked = &analysis.Analyzer{
	Name:       "errcheck",
	Doc:        "find errors that are not checked\n\nA deferred Close needs no check, because it follows reading. Files that were written are closed, and the error checked, before the function ends.",
	ResultType: errcheck.Analyzer.ResultType,
	Run:        findUnchecked,
}

// cannotFail are calls whose error cannot happen, or could not be reported.
var cannotFail = []string{
	"fmt.Fprint(*os.File)", "fmt.Fprintf(*os.File)", "fmt.Fprintln(*os.File)", // standard error: the failure could not be reported. Files are written with Write
	"fmt.Fprint(*text/tabwriter.Writer)", "fmt.Fprintf(*text/tabwriter.Writer)", "fmt.Fprintln(*text/tabwriter.Writer)", // in memory, until Flush, whose error is checked
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
