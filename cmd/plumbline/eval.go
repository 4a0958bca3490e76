package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/plumbline/plumbline/aap/eval"
)

type aapCommands struct {
	Eval evalCommand `cmd:"" help:"Answer requests (verify, condition, drift, coherence, …): one JSON object per line, one result per line."`
}

type evalCommand struct {
	File    string    `arg:"" optional:"" default:"-" help:"File of requests; - is standard input."`
	Profile string    `enum:"spec,reference" default:"spec" help:"spec judges as Plumbline does, reference as the public SDK (${enum})."`
	Now     time.Time `placeholder:"TIME" help:"Time of judgement if a request names none (RFC 3339). Default: now."`
}

// Help returns the examples.
func (*evalCommand) Help() string {
	return examples(
		"plumbline aap eval requests.jsonl",
		"plumbline aap eval --profile reference < requests.jsonl",
	)
}

// Run judges. The output reports what is bad; the exit code does not.
func (c *evalCommand) Run(ctx context.Context, con *console) error {
	in, err := openAny(ctx, c.File, con.in)
	if err != nil {
		return err
	}
	defer in.Close()
	read := &counter{Reader: in}
	err = eval.Run(read, con.out, eval.Options{Profile: eval.Profile(c.Profile), Now: cmp.Or(c.Now, time.Now())})
	if err == nil && read.bytes == 0 {
		return fmt.Errorf("%w: %s is empty", errNothing, nameOf(c.File))
	}
	return err
}

// counter counts the bytes that are read.
type counter struct {
	io.Reader
	bytes int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += int64(n)
	return n, err
}
