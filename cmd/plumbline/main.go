// Command plumbline is the operator's tool: it runs everything on one machine, and
// inspects and manages a running pipeline.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/schema"
)

// commands declares the command line.
type commands struct {
	Up        upCommand         `cmd:"" help:"Run broker, database engine and all services on this machine."`
	Demo      demoCommand       `cmd:"" help:"Run everything on a simulated fleet and compare what is found with what was planted."`
	Send      sendCommand       `cmd:"" help:"Publish traces from files through a running up."`
	Trace     traceCommands     `cmd:"" help:"Look at traces."`
	Card      cardCommands      `cmd:"" help:"Register, show, list, revoke and lint alignment cards."`
	AAP       aapCommands       `cmd:"" name:"aap" help:"Judge offline."`
	Bundle    bundleCommands    `cmd:"" help:"Verify and look into sealed bundles."`
	DLQ       dlqCommands       `cmd:"" name:"dlq" help:"Look at dead letters, send them again, or be done with them."`
	Drift     driftCommands     `cmd:"" help:"Explain what drift sees in an agent, and pin baselines."`
	Keys      keysCommands      `cmd:"" help:"Make, show and rotate signing keys."`
	Coherence coherenceCommands `cmd:"" help:"Check whether agents can work together."`
	Message   messageCommands   `cmd:"" help:"Have messages to agents signed, and verify them."`
	Micro     microCommands     `cmd:"" help:"Proofs of single scans (AIVS-Micro)."`
	Ledger    ledgerCommands    `cmd:"" help:"Verify and show integrity ledgers."`
	Log       logCommands       `cmd:"" help:"Verify transparency logs."`
	Check     checkCommand      `cmd:"" help:"Check the settings of broker and database; with --deep, whether all that is kept agrees."`
	Replay    replayCommand     `cmd:"" help:"Judge traces of the stream again, or run drift again, and write what is missing."`
	SQL       sqlCommand        `cmd:"" name:"sql" help:"Query the pipeline's ClickHouse."`
	Bench     benchCommand      `cmd:"" help:"Measure traces a second on this machine, publish to queryable, beside the floor."`
	Migrate   migrateCommand    `cmd:"" help:"Bring a database to this version's tables and views, and with --nats-url a broker to its streams."`
	NATSUsers natsConfigCommand `cmd:"" name:"nats-config" help:"Write the users of a NATS server of your own: what each agent and each service may do there."`
	Version   versionCommand    `cmd:"" help:"Print the version."`
}

const description = `Plumbline is an evidence pipeline for fleets of AI agents. It shows what agents did; it never claims that they are safe.

Exit codes: 0 good, 1 found bad or failed, 2 wrong command line or nothing to read. Every flag can also be given as the variable PLUMBLINE_<FLAG>.`

// console is the input and output of a command.
type console struct {
	in   io.Reader
	out  io.Writer // results
	errs *os.File  // everything else

	faults []string // of the command line; up reports them together with those of its settings
}

// upName is the name of the command whose settings are validated.
const upName = "up"

// checkFlags finds every fault in the environment variables and flags of a command without
// arguments, and returns the command line without the faulty ones.
func checkFlags(parser *kong.Kong, args []string) (good, faults []string) {
	node, rest := parser.Model.Node, args
	for len(rest) > 0 {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == rest[0] })
		if i < 0 {
			break
		}
		node, rest = node.Children[i], rest[1:]
	}
	if len(node.Children) > 0 || len(node.Positional) > 0 {
		return args, nil // kong reports the faults
	}
	good, faults = config.CheckFlags(slices.Concat(node.AllFlags(false)...), rest)
	return slices.Concat(args[:len(args)-len(rest)], good), faults
}

func main() {
	child.Dispatch()
	os.Exit(execute(os.Args[1:]))
}

// execute runs the command line and returns the exit code. The first signal ends
// the command's context, the second ends the process.
func execute(args []string) int {
	defaults := commands{
		Up:     upCommand{Connections: admission.Default(), Thresholds: machine.PublishedThresholds()},
		Replay: replayCommand{Verifier: verifier.DefaultRules(), Rules: drift.DefaultRules()},
	}
	parser, err := kong.New(&defaults, kong.Name("plumbline"), kong.Description(description),
		config.Variables(), kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(readTime)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		panic(err) // a fault in the declarations above, on every run
	}
	good, faults := checkFlags(parser, args)
	command, err := parser.Parse(good)
	if err != nil && len(faults) > 0 {
		err = config.Usage(append(faults, err.Error()))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "plumbline: %v\nTry: plumbline --help\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	command.BindTo(ctx, (*context.Context)(nil))
	con := &console{in: &interruptible{ctx: ctx, in: os.Stdin}, out: os.Stdout, errs: os.Stderr, faults: faults}
	if err = config.Usage(faults); err == nil || command.Selected().Name == upName {
		err = command.Run(con)
	}
	if err != nil && !errors.Is(err, errFoundBad) {
		fmt.Fprintf(os.Stderr, "plumbline: %v\n", err)
	}
	return exitCode(err)
}

// readTime parses a flag's time with the rules for times in records.
func readTime(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	at, err := schema.ParseTime(text)
	if err != nil {
		return fmt.Errorf("%q is %w", text, err)
	}
	target.Set(reflect.ValueOf(at))
	return nil
}
