package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/plumbline/plumbline/cmd/plumbline/demo"
	"github.com/plumbline/plumbline/machine"
)

type demoCommand struct {
	Data   string `placeholder:"DIR" help:"Keep all data in this directory: a new or empty one, or that of an earlier demo. Without it, all data is removed at the end."`
	Agents int    `default:"200" help:"Number of agents of the simulated fleet."`
	Traces int    `default:"20000" help:"Number of distinct traces that they publish."`
	Seed   uint64 `default:"1" help:"Seed of the simulated fleet: equal seeds give equal fleets."`
	From   string `placeholder:"FILE" help:"Publish a recorded corpus instead, without planted faults: a file of traces, one JSON object per line, gzipped or not."`
	Cards  string `placeholder:"FILE" help:"File of the cards of the recorded corpus, in the same format."`
	Stay   bool   `help:"Leave everything running at the end, until Ctrl-C: the console shows the fleet. It prints its address."`
	JSON   bool   `help:"Print one JSON object."`
}

// Help returns the examples.
func (*demoCommand) Help() string {
	return examples(
		"plumbline demo",
		"plumbline demo --stay",
		"plumbline demo --agents 20 --traces 2000 --data demo-data",
	)
}

// Run runs the demo; it fails unless exactly what was planted is found.
func (c *demoCommand) Run(ctx context.Context, con *console) error {
	switch {
	case c.Agents < 1 || c.Traces < 1:
		return usagef("--agents and --traces: want at least 1")
	case (c.From == "") != (c.Cards == ""):
		return usagef("--from and --cards must be given together: a recorded corpus consists of traces and their cards")
	}
	cfg := demo.Config{Agents: c.Agents, Traces: c.Traces, Seed: c.Seed, From: c.From, Cards: c.Cards, Machine: con.machine()}
	cfg.Machine.DataDir = c.Data
	if c.Stay {
		cfg.Machine.Console = machine.ConsoleAnywhere
		cfg.Stay = func(ctx context.Context, m *machine.Machine, result *demo.Result) error {
			err := c.report(con, result)
			fmt.Fprintf(con.errs, "\nThe console shows this fleet: %s\nCtrl-C stops everything.\n", m.Endpoints().ConsoleURL)
			return errors.Join(err, m.Wait(ctx))
		}
	}
	result, err := demo.Run(ctx, cfg)
	if errors.Is(err, demo.ErrOther) {
		return usagef("%w: the demo would publish its simulated traces there. Give a new directory with --data, or none (unset PLUMBLINE_DATA): then it takes a temporary one", err)
	}
	if errors.Is(err, fs.ErrNotExist) && c.From != "" {
		return fmt.Errorf("%w: %w", errNothing, err)
	}
	if err != nil || c.Stay {
		return err
	}
	return c.report(con, result)
}

func (c *demoCommand) report(con *console, result *demo.Result) error {
	result.Kept = c.Data
	var err error
	if c.JSON {
		for _, fault := range result.Faults {
			fmt.Fprintln(con.errs, "WRONG: "+fault)
		}
		err = writeJSON(con.out, result)
	} else {
		err = result.WriteText(con.out)
		if err == nil && !c.Stay && c.Data == "" {
			_, err = fmt.Fprint(con.out, "\nTo see this fleet in the console, run: plumbline demo --stay\n")
		}
	}
	return found(err, len(result.Faults) == 0)
}
