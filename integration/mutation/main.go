package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

// settings are the command's flags.
type settings struct {
	explained string
	workers   int
	also      string
	only      regexp.Regexp
	slowest   time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.explained, "explained", "", "file of the mutants that may survive, each with the reason")
	flag.IntVar(&s.workers, "workers", 2, "how many tests run at a time")
	flag.StringVar(&s.also, "also", "", "packages whose tests are run too, separated by commas")
	flag.TextVar(&s.only, "only", regexp.MustCompile(""), "try only the mutants whose line in the report this regular expression matches, such as a file")
	flag.DurationVar(&s.slowest, "slowest", 0, "leave out tests that take longer; what survives then is to be tried with all")
	flag.Parse()
	if err := s.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// run tries the mutants of each package. The error reports mutants that survived without
// an explanation, and explanations that are no longer needed.
func (s *settings) run(patterns []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	reasons, err := readReasons(s.explained)
	if err != nil {
		return err
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule}, patterns...)
	if err != nil {
		return err
	}
	if packages.PrintErrors(loaded) > 0 {
		return errors.New("the packages do not compile")
	}
	also := strings.FieldsFunc(s.also, func(r rune) bool { return r == ',' })
	tests, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles}, append(also, patterns...)...)
	if err != nil {
		return err
	}
	bad := 0
	for _, pkg := range loaded {
		n, err := s.try(pkg, tests, root, reasons)
		if err != nil {
			return err
		}
		bad += n
	}
	if bad > 0 {
		return fmt.Errorf("%d mutants survive without an explanation, or are explained and do not survive", bad)
	}
	return nil
}

// try tries the mutants of one package and returns how many survive unexplained.
func (s *settings) try(pkg *packages.Package, others []*packages.Package, root string, reasons map[string]string) (bad int, err error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	mutants, overlay, err := instrument(pkg, root, dir)
	if err != nil {
		return 0, err
	}
	var all []test
	var binaries []binary
	for _, other := range others {
		if other.PkgPath != pkg.PkgPath && !dependsOn(other, pkg) {
			continue
		}
		b, err := build(overlay, other.PkgPath, filepath.Dir(other.GoFiles[0]), dir)
		if err != nil {
			return 0, err
		}
		binaries = append(binaries, b)
	}
	for i := range binaries {
		if _, err := os.Stat(binaries[i].path); errors.Is(err, os.ErrNotExist) {
			continue // a package without tests
		}
		tests, err := binaries[i].tests()
		if err != nil {
			return 0, err
		}
		all = append(all, tests...)
	}
	reached := reach(all, dir, len(mutants), s.workers)
	tried, survives := make([]mutant, 0, len(mutants)), make([]bool, len(mutants))
	each(len(mutants), s.workers, func(n int) {
		survives[n] = s.only.MatchString(mutants[n].key()) && !noticed(n, s.quick(reached[n]))
		if _, explained := reasons[mutants[n].key()]; survives[n] && !explained {
			fmt.Fprintf(os.Stderr, "mutation: %d of %d survives: %s\n", n+1, len(mutants), mutants[n].key())
		}
	})
	for i := range mutants {
		if s.only.MatchString(mutants[i].key()) {
			survives[len(tried)], reached[len(tried)] = survives[i], reached[i]
			tried = append(tried, mutants[i])
		}
	}
	survives = survives[:len(tried)]
	bad = report(tried, survives, reached, reasons)
	survivors := 0
	for _, s := range survives {
		if s {
			survivors++
		}
	}
	fmt.Printf("%s: %d mutants, %d survive, %d of them explained; %s\n",
		pkg.PkgPath, len(tried), survivors, survivors-unexplained(tried, survives, reasons), time.Since(began).Round(time.Second))
	return bad, nil
}

func unexplained(mutants []mutant, survives []bool, reasons map[string]string) (n int) {
	for i := range mutants {
		if _, known := reasons[mutants[i].key()]; survives[i] && !known {
			n++
		}
	}
	return n
}

// report prints mutants that survive unexplained, and explained ones that do not survive.
func report(mutants []mutant, survives []bool, reached [][]*test, reasons map[string]string) (bad int) {
	alive, known := map[string]bool{}, map[string]bool{}
	for i := range mutants {
		m := &mutants[i]
		_, explained := reasons[m.key()]
		known[m.key()] = true
		if !survives[i] {
			continue
		}
		alive[m.key()] = true
		if explained {
			continue
		}
		bad++
		how := "SURVIVES"
		if len(reached[i]) == 0 {
			how = "NOT REACHED"
		}
		fmt.Printf("%s (line %d) %s\n", how, m.line, m.key())
	}
	var stale []string
	for key := range reasons {
		if known[key] && !alive[key] {
			stale = append(stale, key)
		}
	}
	slices.Sort(stale)
	for _, key := range stale {
		fmt.Printf("EXPLAINED, BUT NOTICED %s\n", key)
	}
	return bad + len(stale)
}

// dependsOn reports whether a package's tests may reach another package: the other is below
// it in the tree, or named with -also.
func dependsOn(other, pkg *packages.Package) bool {
	return strings.HasPrefix(other.PkgPath, pkg.PkgPath+"/") || !strings.HasPrefix(pkg.PkgPath, other.PkgPath)
}

// readReasons reads lines of the form KEY => REASON; # begins a comment.
func readReasons(file string) (map[string]string, error) {
	reasons := map[string]string{}
	if file == "" {
		return reasons, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, ok := strings.Cut(line, " => ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s: %q: want KEY => REASON", file, line)
		}
		reasons[key] = reason
	}
	return reasons, nil
}
