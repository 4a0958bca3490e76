package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/plumbline/plumbline/cmd/plumbline/bench"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
)

type benchCommand struct {
	Traces     int    `default:"100000" help:"Number of traces to publish in each measurement."`
	Rounds     int    `default:"3" help:"Number of measurements of each kind; they are interleaved."`
	CPUProfile string `name:"cpuprofile" type:"path" placeholder:"FILE" help:"Write a CPU profile of this process, which runs stages and publishers."`
	JSON       bool   `help:"Print one JSON object."`
}

// Run measures and prints the figures.
func (c *benchCommand) Run(ctx context.Context, con *console) (err error) {
	if c.Traces < 1 || c.Rounds < 1 {
		return usagef("--traces and --rounds: want at least 1")
	}
	if c.CPUProfile != "" {
		stop, err := profile(c.CPUProfile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	log, err := obs.NewLogger(con.errs, "text", "warn")
	if err != nil {
		return err
	}
	figures, err := bench.Run(ctx, bench.Config{
		Traces: c.Traces, Rounds: c.Rounds,
		Machine: machine.Config{
			Version: service.BuildVersion(), Log: log,
			Progress: func(message string) { fmt.Fprintln(con.errs, message) },
		},
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(con.out, figures)
	}
	return figures.WriteText(con.out)
}

// profile starts a CPU profile; stop ends it and closes the file.
func profile(path string) (stop func() error, err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
