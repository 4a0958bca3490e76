package bench

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/machine"
)

// Config configures a scenario. Each uses what its command has a flag for.
type Config struct {
	Traces    int `json:"traces"` // published in each round
	Rounds    int `json:"rounds"`
	Agents    int `json:"agents"`
	Instances int `json:"instances"` // processes of each stage that may have several

	Stages     []string `json:"stages,omitempty"` // of All and Steady; nil: all
	Publishers int      `json:"publishers,omitempty"`
	Lines      int      `json:"lines,omitempty"`    // in a post
	Rate       float64  `json:"rate,omitempty"`     // of Steady, traces a second
	Old        bool     `json:"old,omitempty"`      // the posted traces are dated in the hour before
	Unsigned   bool     `json:"unsigned,omitempty"` // of Drain: no agent signs its traces
	Rows       int      `json:"rows,omitempty"`     // of Rows, stored first

	WithoutFloor bool   `json:"without_floor,omitempty"`
	Profile      string `json:"-"` // directory for CPU profiles of the stages; "": none

	Log      *slog.Logger `json:"-"`
	Progress func(string) `json:"-"`
}

// instances returns how many processes of a stage run.
func (c *Config) instances(name string) int {
	if name == machine.Ingest {
		return 1
	}
	return c.Instances
}

func (c *Config) runs(stage string) bool { return slices.Contains(c.Stages, stage) }

// Validate returns the first option with which a scenario cannot be measured, by its name in JSON, or that there is no such scenario.
func (c *Config) Validate(scenario string) error {
	type option struct {
		name  string
		value int
	}
	numbers := []option{{"traces", c.Traces}, {"agents", c.Agents}, {"rounds", c.Rounds}, {"instances", c.Instances}}
	switch scenario {
	case "drain", "seal", "drift", "agents":
	case "rows":
		numbers = append(numbers, option{"rows", c.Rows})
	case "ingest", "all", "steady":
		numbers = append(numbers, option{"publishers", c.Publishers}, option{"lines", c.Lines})
	default:
		return fmt.Errorf("unknown, want one of %s", strings.Join(slices.Sorted(maps.Keys(Scenarios())), ", "))
	}
	for _, n := range numbers {
		if n.value < 1 {
			return fmt.Errorf("%s: %d, want at least 1", n.name, n.value)
		}
	}
	if scenario == "steady" && !(c.Rate > 0) {
		return fmt.Errorf("rate: %v, want more than 0", c.Rate)
	}
	return c.validateStages()
}

func (c *Config) validateStages() error {
	for i, name := range c.Stages {
		switch {
		case !slices.Contains(machine.Stages(), name):
			return fmt.Errorf("stages: %q is none: want some of %s", name, strings.Join(machine.Stages(), ", "))
		case slices.Contains(c.Stages[:i], name):
			return fmt.Errorf("stages: %s is there twice", name)
		}
	}
	switch {
	case c.Stages == nil:
		return nil
	case !c.runs(machine.Ingest):
		return errors.New("stages: ingest must be one of them")
	case c.runs(machine.Exporter) && !c.runs(machine.Verifier):
		return errors.New("stages: exporter needs verifier: it seals what the verifier has stored")
	}
	return nil
}
