package config

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

// Effective are the settings of a command that parses its own command line, and runs the services itself.
type Effective struct {
	settings *settings
	args     []string
}

// ReadFile makes the values of the command's YAML file, which --config in args or PLUMBLINE_CONFIG
// names, the defaults of its flags. It returns every fault, also of misspelt variables: known returns the
// variables of other commands. Variables must have prepared the flags.
//
// The command reads the top of the file, its own section, and the sections of the services that it
// runs: stages returns the keys of each.
func ReadFile(section string, stages func() map[string][]string, flags []*kong.Flag, args []string, known func() []string) (*Effective, []string) {
	s := &settings{section: section, others: sync.OnceValue(stages), origin: map[string]string{}, all: flags, byKey: map[string]*kong.Flag{}}
	for _, flag := range flags {
		if !slices.Contains([]string{"help", "config", "print-config", "version"}, flag.Name) {
			s.add(flag)
		}
	}
	s.elsewhere = sync.OnceValue(func() []string {
		variables := known()
		for _, keys := range s.others() {
			for _, key := range keys {
				variables = append(variables, envPrefix+strings.ToUpper(key))
			}
		}
		return variables
	})
	return &Effective{settings: s, args: args}, append(s.readFile(configPath(args)), s.checkNames(os.Environ())...)
}

// Print writes the effective settings as YAML, each with its origin as a comment, without secrets.
func (e *Effective) Print(out io.Writer) error { return e.settings.print(out, e.args) }
