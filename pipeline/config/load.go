package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Command describes a command to its users.
type Command struct {
	Name    string // "verifier"
	Summary string // one sentence for --help
	Version string

	Examples []string // command lines for --help
}

// ExamplesHeading stands above the examples in a help text.
const ExamplesHeading = "Examples:\n\n"

// Examples returns the end of a help text: command lines that work as they stand.
func Examples(lines ...string) string {
	return ExamplesHeading + "  " + strings.Join(lines, "\n  ")
}

// ErrUsage marks a wrong command line or configuration: exit code 2.
var ErrUsage = errors.New("wrong command line or configuration")

// ErrDone means that --help, --version or --print-config has done all the work.
var ErrDone = errors.New("done")

// grammar is the structure that kong parses: the options of every command, and cfg.
type grammar struct {
	Config      string           `help:"YAML file with settings: at the top those that services share, below the name of a service its own." type:"path" placeholder:"FILE" env:"PLUMBLINE_CONFIG"`
	PrintConfig bool             `help:"Print the effective settings with the origin of each, secrets hidden, and exit." env:"-"`
	Version     kong.VersionFlag `help:"Print the version and exit." env:"-"`
}

// Load fills cfg, which holds the defaults, from the file, the environment and args. It writes
// what the user asked to see to out. The error lists every fault of each source, and of the
// settings together.
func Load(cmd Command, cfg Config, args []string, out io.Writer) error {
	var own grammar
	exited := false
	parser, err := kong.New(&own, kong.Name(cmd.Name), kong.Description(cmd.Summary+"\n\n"+Examples(cmd.Examples...)),
		kong.Vars{"version": cmd.Version}, kong.Writers(out, out), kong.Embed(cfg),
		kong.Exit(func(int) { exited = true }))
	if err != nil {
		return fmt.Errorf("describe the settings of %s: %w", cmd.Name, err)
	}
	settings := newSettings(cmd.Name, parser.Model.Flags)
	good, faults := settings.given(args)
	_, err = parser.Parse(good)
	if exited {
		return ErrDone
	}
	if err != nil {
		faults = append(faults, err.Error())
	} else { // for an unreadable setting, validate the default
		found := cfg.Validate()
		if !own.PrintConfig { // which also helps on a machine without the files
			found = append(found, cfg.FileFaults()...)
		}
		for _, fault := range found {
			faults = append(faults, fault.String())
		}
	}
	if err := Usage(faults); err != nil {
		return err
	}
	if own.PrintConfig {
		return cmp.Or(settings.print(out, args), ErrDone)
	}
	return nil
}

// configPath finds the file before the flags are parsed, because its values are the flags'
// defaults.
func configPath(args []string) string {
	for i, arg := range args {
		if path, ok := strings.CutPrefix(arg, "--config="); ok {
			return path
		}
		if arg == "--config" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return os.Getenv("PLUMBLINE_CONFIG")
}
