// Command lint looks for faults in the packages that its arguments name. It runs staticcheck and
// other analysers in one binary, so each package is loaded once. Its findings in a package are
// cached until the package or one that it imports changes.
//
// To ignore a finding, write the check and the reason on the line above it:
//
//	//lint:ignore errcheck the process was killed: its error does not matter
//
// It is a separate module, so its dependencies are not Plumbline's.
package main

import (
	"os"

	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/timakin/bodyclose/passes/bodyclose"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/reflectvaluecompare"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// Left out, with what they found here: nilerr (ten places, all of them errors that become
// findings or answers, as in check and replay), shadow (an inner err is usual in this repository).
func main() {
	command := lintcmd.NewCommand("lint")
	command.ParseFlags(os.Args[1:])
	command.AddAnalyzers(staticcheck.Analyzers...) // SA: faults
	command.AddAnalyzers(simple.Analyzers...)      // S: code that one call of the standard library replaces
	command.AddAnalyzers(stylecheck.Analyzers...)  // ST: comments of packages and names, texts of errors, names of receivers
	command.AddAnalyzers(unused.Analyzer)          // U1000: unused code
	command.AddBareAnalyzers(
		bodyclose.Analyzer,           // responses whose body is not closed
		unchecked,                    // errors that are not checked
		errorlint.NewAnalyzer(),      // errors compared without errors.Is, or wrapped without %w
		ineffassign.Analyzer,         // values that nothing reads
		misspelling,                  // misspelt words
		nilness.Analyzer,             // nil that is certain to be followed
		reflectvaluecompare.Analyzer, // reflect.Values compared instead of their contents
		unusedwrite.Analyzer,         // writes to a copy that nothing reads
	)
	command.Run()
}
