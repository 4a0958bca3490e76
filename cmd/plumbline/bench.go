package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/plumbline/plumbline/cmd/plumbline/bench"
	"github.com/plumbline/plumbline/fleet"
)

// benchCommands are the scenarios (docs/bench/README.md).
type benchCommands struct {
	Drain  benchDrainCommand  `cmd:"" help:"The verifier works through a backlog."`
	Ingest benchIngestCommand `cmd:"" help:"Ingest alone takes posts, as fast as it answers."`
	All    benchAllCommand    `cmd:"" help:"All stages: posts over HTTP until the traces are queryable, sealed, and watched by drift."`
	Steady benchSteadyCommand `cmd:"" help:"All stages at a given rate: latencies, and whether the rate is held."`
	Seal   benchSealCommand   `cmd:"" help:"The exporter seals the sessions of a backlog."`
	Drift  benchDriftCommand  `cmd:"" help:"Drift works through a backlog."`
	Agents benchAgentsCommand `cmd:"" help:"The verifier, and then drift, work through a backlog of many agents."`
	Rows   benchRowsCommand   `cmd:"" help:"Many stored rows: how long the questions of people take, and the verifier's backlog."`
	Check  benchCheckCommand  `cmd:"" help:"Measure scenarios again, and compare their ratios to the floor with recorded ones."`
}

// floorFlags are the flags of every scenario.
type floorFlags struct {
	Floor bool `default:"true" negatable:"" help:"Measure the floor, too: a program that only stores the traces."`
	JSON  bool `help:"Print one JSON object."`
}

// runFlags are the flags of scenarios that can be repeated. The variable rounds is the default number.
type runFlags struct {
	Instances  int    `default:"1" help:"Number of processes of each stage that may have several."`
	Rounds     int    `default:"${rounds}" help:"Number of measurements; medians are printed."`
	Profile    string `type:"path" placeholder:"DIR" help:"Write a CPU profile of each stage into this directory, which is created."`
	floorFlags `embed:""`
}

// loadFlags are the flags of scenarios with a number of traces of the usual fleet.
type loadFlags struct {
	Traces   int `default:"100000" help:"Number of traces, of about 1.9 KB each."`
	Agents   int `default:"200" help:"Number of agents of the simulated fleet."`
	runFlags `embed:"" set:"rounds=3"`
}

// publisherFlags and postFlags are the flags of scenarios with publishers. They are two types because each
// has a default that differs between scenarios.
type publisherFlags struct {
	Publishers int `default:"${publishers}" help:"Number of publishers, each with one request open. The agents are divided among them."`
}

type postFlags struct {
	Lines int  `default:"${lines}" help:"Number of traces in a post."`
	Old   bool `help:"Date the traces in the hour before, so that ingest looks for earlier copies among the stored rows."`
}

type stageFlags struct {
	Stages []string `default:"ingest,verifier,drift,exporter" help:"The stages that run, ingest among them."`
}

type benchDrainCommand struct {
	loadFlags `embed:""`
	Unsigned  bool `help:"No agent signs its traces. Some of the usual fleet do, and a signature takes longer to check than all else in a trace."`
}

// Help returns the examples.
func (*benchDrainCommand) Help() string {
	return examples(
		"plumbline bench drain",
		"plumbline bench drain --traces 300000 --json",
		"plumbline bench drain --traces 300000 --unsigned",
		"plumbline bench drain --traces 20000 --rounds 1 --no-floor --profile .",
	)
}

// Run measures.
func (c *benchDrainCommand) Run(ctx context.Context, con *console) error {
	cfg := c.config()
	cfg.Unsigned = c.Unsigned
	return c.run(ctx, con, "drain", cfg)
}

type benchSealCommand struct {
	loadFlags `embed:""`
}

// Help returns the examples.
func (*benchSealCommand) Help() string {
	return examples("plumbline bench seal", "plumbline bench seal --traces 20000 --rounds 1 --json")
}

// Run measures.
func (c *benchSealCommand) Run(ctx context.Context, con *console) error {
	return c.run(ctx, con, "seal", c.config())
}

type benchDriftCommand struct {
	loadFlags `embed:""`
}

// Help returns the examples.
func (*benchDriftCommand) Help() string {
	return examples("plumbline bench drift", "plumbline bench drift --traces 20000 --rounds 1 --json")
}

// Run measures.
func (c *benchDriftCommand) Run(ctx context.Context, con *console) error {
	return c.run(ctx, con, "drift", c.config())
}

type benchAgentsCommand struct {
	N        int `name:"n" default:"50000" help:"Number of agents, each with a card. Of more than 50,000, the others publish nothing."`
	Traces   int `default:"100000" help:"Number of traces, of about 1.9 KB each."`
	runFlags `embed:"" set:"rounds=1"`
}

// Help returns the examples.
func (*benchAgentsCommand) Help() string {
	return examples("plumbline bench agents --n 50000", "plumbline bench agents --n 1000000 --json")
}

// Run measures.
func (c *benchAgentsCommand) Run(ctx context.Context, con *console) error {
	if c.N < 1 {
		return usagef("--n: %d, want at least 1", c.N)
	}
	return c.run(ctx, con, "agents", bench.Config{Traces: c.Traces, Agents: c.N})
}

type benchRowsCommand struct {
	N          int `name:"n" default:"20000000" help:"Number of traces that are stored first, with their verdicts, points, sessions and bundles."`
	Traces     int `default:"100000" help:"Number of traces of the verifier's backlog."`
	floorFlags `embed:""`
}

// Help returns the examples.
func (*benchRowsCommand) Help() string {
	return examples("plumbline bench rows", "plumbline bench rows --n 1000000 --traces 20000 --no-floor --json")
}

// Run measures.
func (c *benchRowsCommand) Run(ctx context.Context, con *console) error {
	if c.N < 1 {
		return usagef("--n: %d, want at least 1", c.N)
	}
	f := runFlags{Instances: 1, Rounds: 1, floorFlags: c.floorFlags}
	return f.run(ctx, con, "rows", bench.Config{Traces: c.Traces, Agents: fleet.DefaultAgents, Rows: c.N})
}

type benchIngestCommand struct {
	loadFlags      `embed:""`
	publisherFlags `embed:"" set:"publishers=4"`
	postFlags      `embed:"" set:"lines=2000"`
}

// Help returns the examples.
func (*benchIngestCommand) Help() string {
	return examples("plumbline bench ingest", "plumbline bench ingest --lines 5 --publishers 100 --json")
}

// Run measures.
func (c *benchIngestCommand) Run(ctx context.Context, con *console) error {
	return c.run(ctx, con, "ingest", c.posts(c.config(), c.Publishers))
}

type benchAllCommand struct {
	loadFlags      `embed:""`
	publisherFlags `embed:"" set:"publishers=4"`
	postFlags      `embed:"" set:"lines=2000"`
	stageFlags     `embed:""`
}

// Help returns the examples.
func (*benchAllCommand) Help() string {
	return examples("plumbline bench all", "plumbline bench all --stages ingest,verifier --json")
}

// Run measures.
func (c *benchAllCommand) Run(ctx context.Context, con *console) error {
	cfg := c.posts(c.config(), c.Publishers)
	cfg.Stages = c.Stages
	return c.run(ctx, con, "all", cfg)
}

type benchSteadyCommand struct {
	Rate           float64 `default:"5000" help:"Number of traces a second that become due."`
	Seconds        float64 `default:"60" help:"How long."`
	Agents         int     `default:"200" help:"Number of agents of the simulated fleet."`
	publisherFlags `embed:"" set:"publishers=20"`
	postFlags      `embed:"" set:"lines=25"`
	stageFlags     `embed:""`
	runFlags       `embed:"" set:"rounds=1"`
}

// Help returns the examples.
func (*benchSteadyCommand) Help() string {
	return examples(
		"plumbline bench steady --rate 5000 --lines 25",
		"plumbline bench steady --rate 1000 --lines 5 --seconds 20 --no-floor --json",
		"plumbline bench steady --rate 10000 --lines 500 --stages ingest,verifier",
	)
}

// Run measures.
func (c *benchSteadyCommand) Run(ctx context.Context, con *console) error {
	traces := c.Rate * c.Seconds
	if !(c.Rate > 0 && c.Seconds > 0 && traces >= 1 && traces <= math.MaxInt32) {
		return usagef("--rate and --seconds: %v/s for %v s, want 1 to %d traces", c.Rate, c.Seconds, math.MaxInt32)
	}
	return c.run(ctx, con, "steady", c.posts(bench.Config{Traces: int(traces), Agents: c.Agents, Rate: c.Rate, Stages: c.Stages}, c.Publishers))
}

// config returns what the flags of the load say.
func (f *loadFlags) config() bench.Config { return bench.Config{Traces: f.Traces, Agents: f.Agents} }

// posts adds what the flags of the posts say.
func (f *postFlags) posts(cfg bench.Config, publishers int) bench.Config {
	cfg.Publishers, cfg.Lines, cfg.Old = publishers, f.Lines, f.Old
	return cfg
}

// run measures a scenario and prints the result.
func (f *runFlags) run(ctx context.Context, con *console, scenario string, cfg bench.Config) error {
	cfg.Instances, cfg.Rounds, cfg.WithoutFloor, cfg.Profile = f.Instances, f.Rounds, !f.Floor, f.Profile
	if err := cfg.Validate(scenario); err != nil {
		return usagef("--%w", err) // flags have the names of the members
	}
	if f.Profile != "" {
		if err := os.MkdirAll(f.Profile, 0o755); err != nil {
			return usagef("--profile: %w", err)
		}
	}
	cfg.Log, cfg.Progress = con.logger(), con.progress
	result, err := bench.Scenarios()[scenario](ctx, cfg)
	if err != nil {
		return err
	}
	if f.JSON {
		return writeJSON(con.out, result)
	}
	return result.WriteText(con.out)
}

// progress tells the user what a long command does.
func (con *console) progress(message string) { fmt.Fprintln(con.errs, message) }

type benchCheckCommand struct {
	File      string   `arg:"" default:"docs/bench/ratios.jsonl" help:"Recorded results, as the scenarios print them with --json, a line each (${default})."`
	Scenarios []string `placeholder:"NAME" help:"Only these scenarios."`
}

// Help returns the examples.
func (*benchCheckCommand) Help() string {
	return examples("plumbline bench check", "plumbline bench check docs/bench/ratios.jsonl --scenarios drain,all")
}

// Run measures each recorded scenario again, with the options of then. It fails if a ratio is lower by more than bench.Tolerance.
func (c *benchCheckCommand) Run(ctx context.Context, con *console) error {
	text, err := os.ReadFile(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errNothing, err)
	}
	if err != nil {
		return err
	}
	recorded, err := bench.ReadRatios(text)
	if err != nil {
		return usagef("%s: %w", c.File, err)
	}
	if recorded, err = bench.Choose(recorded, c.Scenarios); err != nil {
		return usagef("--scenarios: %s: %w", c.File, err)
	}
	good := true
	for _, r := range recorded {
		cfg := r.Options
		cfg.Log, cfg.Progress = con.logger(), con.progress
		now, err := bench.Scenarios()[r.Scenario](ctx, cfg)
		if err != nil {
			return err
		}
		for _, d := range bench.Compare(r, now) {
			good = good && !d.Slower()
			if _, err := fmt.Fprintln(con.out, d); err != nil {
				return err
			}
		}
	}
	return found(nil, good)
}
