// Command lint looks for faults in the packages that its arguments name: staticcheck and
// other analysers of faults, in one binary, so that each package is loaded once. What it
// found in a package is cached until the package or one below it changes.
//
// A finding that is right as it is gets, on the line above it, the check and a reason:
//
//	//lint:ignore errcheck the process is killed: it can do nothing but end
//
// It is a module of its own, so that nothing of it comes near Plumbline's.
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
// findings or answers, as in check and replay), shadow (an inner err is this house's way).
func main() {
	command := lintcmd.NewCommand("lint")
	command.ParseFlags(os.Args[1:])
	command.AddAnalyzers(staticcheck.Analyzers...) // SA: faults
	command.AddAnalyzers(simple.Analyzers...)      // S: what is said in one call of the standard library
	command.AddAnalyzers(stylecheck.Analyzers...)  // ST: comments of packages and names, texts of errors, names of receivers
	command.AddAnalyzers(unused.Analyzer)          // U1000: what nothing uses
	command.AddBareAnalyzers(
		bodyclose.Analyzer,           // responses whose body is not closed
		unchecked,                    // errors that nothing looks at
		errorlint.NewAnalyzer(),      // errors compared without errors.Is, or wrapped without %w
		ineffassign.Analyzer,         // values that nothing reads
		misspelling,                  // words spelt wrong
		nilness.Analyzer,             // nil that is certain to be followed
		reflectvaluecompare.Analyzer, // reflect.Values compared, not what they hold
		unusedwrite.Analyzer,         // writes to a copy that nothing reads
	)
	command.Run()
}
