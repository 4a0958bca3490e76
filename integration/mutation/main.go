package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
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
	for _, other := range others {
		if other.PkgPath != pkg.PkgPath && !dependsOn(other, pkg) {
			continue
		}
		b, err := build(overlay, other.PkgPath, filepath.Dir(other.GoFiles[0]), dir)
		if err != nil {
			return 0, err
		}
		if _, err := os.Stat(b.path); errors.Is(err, os.ErrNotExist) {
			continue // a package without tests
		}
		tests, err := b.tests()
		if err != nil {
			return 0, err
		}
		all = append(all, tests...)
	}
	reached, survives := reach(all, dir, len(mutants), s.workers), make([]bool, len(mutants))
	each(len(mutants), s.workers, func(n int) {
		survives[n] = s.only.MatchString(mutants[n].key()) && !noticed(n, s.quick(reached[n]))
		if _, explained := reasons[mutants[n].key()]; survives[n] && !explained {
			fmt.Fprintf(os.Stderr, "mutation: %d of %d survives: %s\n", n+1, len(mutants), mutants[n].key())
		}
	})

	tried, survivors, unneeded := 0, 0, map[string]bool{} // unneeded: the explained mutants that a test notices
	for i := range mutants {
		m := &mutants[i]
		if !s.only.MatchString(m.key()) {
			continue
		}
		tried++
		_, explained := reasons[m.key()]
		if _, known := unneeded[m.key()]; explained && !known {
			unneeded[m.key()] = true // unless one of the mutants with this key survives
		}
		switch {
		case !survives[i]:
			continue
		case explained:
			unneeded[m.key()] = false
		case len(reached[i]) == 0:
			bad++
			fmt.Printf("NOT REACHED (line %d) %s\n", m.line, m.key())
		default:
			bad++
			fmt.Printf("SURVIVES (line %d) %s\n", m.line, m.key())
		}
		survivors++
	}
	fmt.Printf("%s: %d mutants, %d survive, %d of them explained; %s\n",
		pkg.PkgPath, tried, survivors, survivors-bad, time.Since(began).Round(time.Second))
	for _, key := range slices.Sorted(maps.Keys(unneeded)) {
		if unneeded[key] {
			bad++
			fmt.Printf("EXPLAINED, BUT NOTICED %s\n", key)
		}
	}
	return bad, nil
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
