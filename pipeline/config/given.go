package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// checkNames returns the faults of variables whose names resemble those of settings, and of those that
// a program which runs the services itself would have to apply to all of them, and cannot set. Other
// variables that begin with PLUMBLINE_ may belong to another command or to the platform.
func (s *settings) checkNames(environ []string) (faults []string) {
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		key, ours := strings.CutPrefix(name, envPrefix)
		if !ours || s.byKey[strings.ToLower(key)] != nil {
			continue
		}
		if s.others != nil && sharedKeys()[strings.ToLower(key)] && text != "" {
			faults = append(faults, fmt.Sprintf("environment: %s: %s cannot set this: remove the variable", name, s.section))
			continue
		}
		near := s.nearest(strings.ToLower(key))
		if near != "" && (s.elsewhere == nil || !slices.Contains(s.elsewhere(), name)) {
			faults = append(faults, fmt.Sprintf("environment: %s: unknown variable, did you mean %s%s?", name, envPrefix, strings.ToUpper(near)))
		}
	}
	return faults
}

// checkVariables returns the faults of variables whose values their settings do not accept, and
// makes the settings ignore those variables.
func checkVariables(flags []*kong.Flag) (faults []string) {
	for _, flag := range flags {
		for _, name := range flag.Envs {
			text, set := os.LookupEnv(name)
			if !set {
				continue
			}
			if err := try(flag, text); err != nil {
				faults = append(faults, fmt.Sprintf("environment: %s: %v", name, err))
				flag.Envs, flag.Tag.Envs = nil, nil
			}
		}
	}
	return faults
}

// CheckFlags finds every fault of a command's variables and flags, and returns the arguments
// without the faulty ones. kong itself reports only the first fault. The command must have no
// positional arguments.
func CheckFlags(flags []*kong.Flag, args []string) (good, faults []string) {
	s := &settings{all: flags, order: flags}
	faults = checkVariables(flags)
	for i := 0; i < len(args); i++ {
		name, text, assigned := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		flag, negated := s.flagOf(name)
		switch {
		case args[i] == "--", !strings.HasPrefix(args[i], "--"):
			return append(good, args[i:]...), faults // kong handles these
		case flag == nil:
			faults = append(faults, fmt.Sprintf("--%s: unknown flag%s", name, s.suggestFlag(name)))
			if !assigned && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") { // its value
				i++
			}
			continue
		case negated, flag.IsBool() && !assigned:
			good = append(good, args[i])
			continue
		case !assigned && (i+1 == len(args) || strings.HasPrefix(args[i+1], "--")):
			faults = append(faults, fmt.Sprintf("--%s: its value is missing", name))
			continue
		case !assigned:
			i++
			text = args[i]
		}
		if err := try(flag, text); err != nil {
			faults = append(faults, fmt.Sprintf("--%s: %v", name, err))
			continue
		}
		good = append(good, "--"+name+"="+text)
	}
	return good, faults
}

// flagOf returns the flag with a name. negated is true for a boolean flag with the prefix "no-"
// that can be negated.
func (s *settings) flagOf(name string) (flag *kong.Flag, negated bool) {
	for _, flag := range s.all {
		if flag.Name == name || slices.Contains(flag.Aliases, name) {
			return flag, false
		}
		if flag.Tag.Negatable != "" && name == "no-"+flag.Name {
			return flag, true
		}
	}
	return nil, false
}

func (s *settings) suggestFlag(name string) string {
	near := s.nearest(strings.ReplaceAll(name, "-", "_"))
	if near == "" {
		return ": --help lists them"
	}
	return ", did you mean --" + strings.ReplaceAll(near, "_", "-") + "?"
}

// given finds the faults of everything that configures a command in addition to its defaults, and
// returns the arguments without faults.
func (s *settings) given(args []string) (good, faults []string) {
	faults = append(s.readFile(configPath(args)), s.checkNames(os.Environ())...)
	good, wrong := CheckFlags(s.all, args)
	return good, append(faults, wrong...)
}

// maxDistance is the maximum edit distance at which a misspelt key is recognised.
const maxDistance = 2

// suggest returns ", did you mean …?", or where the keys are listed.
func (s *settings) suggest(key string) string {
	if near := s.nearest(key); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ": --print-config lists them"
}

// nearest returns the known key with an edit distance of at most maxDistance from key, or "".
func (s *settings) nearest(key string) string {
	keys := make([]string, len(s.order))
	for i, flag := range s.order {
		keys[i] = yamlKey(flag)
	}
	return nearestOf(keys, key)
}

func nearestOf(keys []string, key string) string {
	best, distance := "", maxDistance+1
	for _, known := range keys {
		if d := editDistance(key, known); d < distance {
			best, distance = known, d
		}
	}
	return best
}

// editDistance returns the Levenshtein distance: insertions, deletions and substitutions of
// bytes. Two exchanged neighbours count as two.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
