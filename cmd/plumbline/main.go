package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs/report"
	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/schema"
)

// command is what a command line begins with.
type command struct {
	name, help string
	declared   any // a pointer to a struct that kong reads, with the defaults that a tag cannot have
}

// commands declares the command line, in the order of the help.
func commands() []command {
	return []command{
		{"up", "Run broker, database engine and all services on this machine.", &upCommand{
			Connections: admission.Default(), DriftComparison: drift.DefaultComparison(), Thresholds: machine.PublishedThresholds(), OTLP: config.DefaultOTLP(),
			SealIdle: exporter.Default().Idle, DriftResidentBytes: drift.Default().ResidentBytes, Memory: engine.DefaultMemory >> 20, NATS: config.NATS{Replicas: 1}}},
		{"demo", "Run everything on a simulated fleet, and compare the findings with the planted faults.", &demoCommand{}},
		{"send", "Publish traces from files.", &sendCommand{}},
		{"trace", "Show traces, and convert recordings to traces.", &traceCommands{}},
		{"mcp", "Record the tool calls of an MCP server: run between it and its client, over stdio or HTTP.", &mcpCommand{}},
		{"card", "Register, show, list, revoke and lint alignment cards.", &cardCommands{}},
		{"aap", "Judge offline.", &aapCommands{}},
		{"bundle", "Verify, seal and show bundles.", &bundleCommands{Report: bundleReportCommand{Full: report.DefaultFull}}},
		{"dlq", "Show dead letters, publish them again, or mark them as handled.", &dlqCommands{}},
		{"drift", "List alerts of drift, explain the drift of an agent, and pin baselines.", &driftCommands{}},
		{"keys", "Create, show and rotate signing keys.", &keysCommands{}},
		{"token", "Make, list, revoke and rotate the tokens of publishers and readers.", &tokenCommands{}},
		{"webhook", "Make the secrets of webhooks, and receive alerts to try them.", &webhookCommands{}},
		{"coherence", "Check whether agents can work together.", &coherenceCommands{}},
		{"message", "Sign and verify messages to agents.", &messageCommands{}},
		{"micro", "Proofs of single scans (AIVS-Micro).", &microCommands{}},
		{"ledger", "Verify and show integrity ledgers.", &ledgerCommands{}},
		{"log", "Verify transparency logs.", &logCommands{}},
		{"check", "Check the settings of broker and database, and with --deep the stored data.", &checkCommand{}},
		{"replay", "Judge the traces of the stream again, or run drift again, and write missing results.", &replayCommand{
			Verifier: verifier.DefaultRules(), Rules: drift.DefaultRules()}},
		{"sql", "Query the pipeline's ClickHouse.", &sqlCommand{}},
		{"bench", "Measure what this machine carries, beside the floor: the rate of a program that only stores the same traces, in the same run.", &benchCommands{}},
		{"migrate", "Create or update the tables and views of a database, and with --nats-url the streams of a broker.", &migrateCommand{}},
		{"nats-config", "Write the users of your own NATS server, with the rights of each agent and each service.", &natsConfigCommand{}},
		{"version", "Print the version and exit.", &versionCommand{}},
		{"completion", "Print the script with which bash, zsh or fish completes command lines.", &completionCommand{}},
		{"man", "Write the manual pages, or print the first one.", &manCommand{}},
	}
}

const description = `Plumbline is an evidence pipeline for fleets of AI agents. It shows what agents did; it never claims that they are safe.

Exit codes: 0 good, 1 found bad or failed, 2 wrong command line or nothing to read. Every flag can also be set by the variable PLUMBLINE_<FLAG>.`

// console is the input and output of a command.
type console struct {
	in   io.Reader
	out  io.Writer // results
	errs *os.File  // everything else

	faults   []string          // of the command line; up reports them together with those of its settings
	settings *config.Effective // of up
}

// logger returns the log of a command that is not up: warnings, as text.
func (con *console) logger() *slog.Logger {
	log, err := obs.NewLogger(con.errs, obs.FormatText, "warn")
	if err != nil {
		panic(err) // NewLogger does not know the format or the level above
	}
	return log
}

// machine returns the configuration of a machine that a command runs for its own purpose.
func (con *console) machine() machine.Config {
	return machine.Config{
		Version: service.BuildVersion(), Log: con.logger(),
		Progress: func(message string) { fmt.Fprintln(con.errs, message) }, Fetching: con.fetching,
	}
}

// upName is the name of the command whose settings are validated.
const upName = "up"

// checkFlags finds every fault in the environment variables and flags of a command without
// arguments, and returns the command line without the faulty ones. For up it also reads the file of its
// settings.
func checkFlags(parser *kong.Kong, args []string) (good, faults []string, settings *config.Effective) {
	node, rest := parser.Model.Node, args
	for len(rest) > 0 {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == rest[0] })
		if i < 0 {
			break
		}
		node, rest = node.Children[i], rest[1:]
	}
	if len(node.Children) > 0 || len(node.Positional) > 0 {
		return args, nil, nil // kong reports the faults
	}
	flags := slices.Concat(node.AllFlags(false)...)
	if node.Name == upName {
		settings, faults = config.ReadFile(upName, stageKeys, flags, rest, func() []string { return variablesOf(newParser().Model.Node) })
	}
	good, wrong := config.CheckFlags(flags, rest)
	return slices.Concat(args[:len(args)-len(rest)], good), append(faults, wrong...), settings
}

// variablesOf returns the variables of the flags of a command and of those below it.
func variablesOf(node *kong.Node) (names []string) {
	for _, flag := range node.Flags {
		names = append(names, flag.Envs...)
	}
	for _, child := range node.Children {
		names = append(names, variablesOf(child)...)
	}
	return names
}

func main() {
	child.Dispatch()
	os.Exit(execute(os.Args[1:]))
}

// commandOf returns the command that a faulty command line names.
func commandOf(err error) string {
	command := "plumbline"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		for _, part := range parse.Context.Path {
			if part.Command != nil {
				command += " " + part.Command.Name
			}
		}
	}
	return command
}

// execute runs the command line and returns the exit code. The first signal ends
// the command's context, the second ends the process.
func execute(args []string) int {
	parser := newParser(args...)
	good, faults, settings := checkFlags(parser, args)
	command, err := parser.Parse(good)
	if err != nil && len(faults) > 0 {
		err = config.Usage(append(faults, err.Error()))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s %s\nTry: %s --help\n", inColor(os.Stderr, red, "plumbline:"), errorText(err), commandOf(err))
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	command.BindTo(ctx, (*context.Context)(nil))
	con := &console{in: &interruptible{ctx: ctx, in: os.Stdin}, out: os.Stdout, errs: os.Stderr, faults: faults, settings: settings}
	if err = config.Usage(faults); err == nil || command.Selected().Name == upName {
		err = command.Run(con)
	}
	if _, ran := errors.AsType[exited](err); err != nil && !ran && !errors.Is(err, errFoundBad) {
		fmt.Fprintf(os.Stderr, "%s %s\n", inColor(os.Stderr, red, "plumbline:"), errorText(err))
	}
	return exitCode(err)
}

// newParser returns the parser of a command line: of its command alone, as if there were no other, because to
// describe all commands takes longer than most commands do. Without a command it has all.
func newParser(args ...string) *kong.Kong {
	chosen := commands()
	if i := slices.IndexFunc(chosen, func(c command) bool { return len(args) > 0 && c.name == args[0] }); i >= 0 {
		chosen = chosen[i : i+1]
	}
	options := []kong.Option{
		kong.Name("plumbline"), kong.Description(description), kong.Vars{"version": versionLine()},
		config.Variables(), kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(readTime)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	}
	for _, c := range chosen {
		options = append(options, kong.DynamicCommand(c.name, c.help, "", c.declared))
	}
	var own struct {
		ShowVersion kong.VersionFlag `name:"version" help:"Print the version and exit."`
	}
	parser, err := kong.New(&own, options...)
	if err != nil {
		panic(err) // a fault in the declarations of commands, on every run
	}
	return parser
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

// The exit codes of every command.
const (
	exitGood  = service.ExitGood
	exitBad   = service.ExitFailed // found faults, or failed
	exitUsage = service.ExitUsage  // wrong command line, or nothing to read
)

var (
	// errFoundBad ends a command whose output has reported the faults.
	errFoundBad = errors.New("faults were found")
	// errNothing reports that there is nothing to read.
	errNothing = errors.New("nothing to read")
)

// found returns the error of a command that has printed its findings.
func found(err error, good bool) error {
	if err == nil && !good {
		return errFoundBad
	}
	return err
}

// usageError reports a command line that cannot be executed.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	var ran exited
	switch {
	case err == nil:
		return exitGood
	case errors.As(err, &ran):
		return int(ran)
	case errors.Is(err, errInterrupted): // takes precedence over the read error that it caused
		return exitBad
	case errors.As(err, &usage), errors.Is(err, errNothing), errors.Is(err, config.ErrUsage), errors.Is(err, machine.ErrNotRunning), errors.Is(err, machine.ErrSeveral):
		return exitUsage
	default:
		return exitBad
	}
}

type versionCommand struct {
	JSON bool `help:"Print one JSON object."`
}

// Help returns the examples.
func (*versionCommand) Help() string {
	return examples(
		"plumbline version",
		"plumbline version --json",
	)
}

// Run prints the versions of the tool and of the judging engine.
func (c *versionCommand) Run(con *console) error {
	if c.JSON {
		return writeJSON(con.out, map[string]string{"version": service.BuildVersion(), "engine": aap.EngineVersion, "go": runtime.Version()})
	}
	_, err := fmt.Fprintln(con.out, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("plumbline %s, judging by %s, %s", service.VersionText(), aap.EngineVersion, runtime.Version())
}
