package main

import (
	"context"
	"errors"
	"os"
	"runtime/pprof"

	"github.com/plumbline/plumbline/cmd/plumbline/bench"
)

type benchCommand struct {
	Traces     int    `default:"100000" help:"Number of traces to publish in each measurement."`
	Rounds     int    `default:"3" help:"Number of measurements of each kind; they are interleaved."`
	CPUProfile string `name:"cpuprofile" type:"path" placeholder:"FILE" help:"Write a CPU profile of this process, which runs stages and publishers."`
	JSON       bool   `help:"Print one JSON object."`
}

// Help returns the examples.
func (*benchCommand) Help() string {
	return examples(
		"plumbline bench",
		"plumbline bench --traces 20000 --rounds 1 --json",
	)
}

// Run measures and prints the figures.
func (c *benchCommand) Run(ctx context.Context, con *console) (err error) {
	if c.Traces < 1 || c.Rounds < 1 {
		return usagef("--traces and --rounds: want at least 1")
	}
	if c.CPUProfile != "" {
		var file *os.File
		if file, err = os.Create(c.CPUProfile); err != nil {
			return err
		}
		if err = pprof.StartCPUProfile(file); err != nil {
			return errors.Join(err, file.Close())
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, file.Close())
		}()
	}
	figures, err := bench.Run(ctx, bench.Config{Traces: c.Traces, Rounds: c.Rounds, Machine: con.machine()})
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(con.out, figures)
	}
	return figures.WriteText(con.out)
}
