package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/reading"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/webhook"
	"github.com/plumbline/plumbline/web"
)

type upCommand struct {
	Config      string `type:"path" placeholder:"FILE" help:"YAML file with settings: keys at the top, or in the section of a service (exporter: {seal_idle: 1h})."`
	PrintConfig bool   `help:"Print the effective settings with the origin of each, secrets hidden, and exit."`

	Data                string        `aliases:"data-dir" default:"./plumbline-data" placeholder:"DIR" help:"Directory for all data (${default})."`
	Listen              string        `default:"127.0.0.1:8080" help:"Address for publishers; port 0: any free port."`
	OTLPGRPCListen      string        `name:"otlp-grpc-listen" placeholder:"ADDRESS" help:"Address for spans of OpenTelemetry over OTLP/gRPC, such as 127.0.0.1:4317, with the same tokens and certificate (docs/OTEL.md). Default: none. OTLP/HTTP is served at the address for publishers in any case."`
	ConsoleListen       string        `default:"auto" placeholder:"ADDRESS" help:"Address of the console, the pages for people (docs/CONSOLE.md). auto: on 127.0.0.1, the port after that of --listen, or any free one if it is taken. none: no console."`
	TokenFile           string        `type:"path" help:"File of hashed tokens (plumbline token new). Default: tokens.jsonl in the data directory, if it exists; required unless the address is loopback."`
	TLSCertFile         string        `name:"tls-cert-file" type:"path" help:"Certificate (PEM), to serve publishers over HTTPS with TLS 1.3. The handshake requires it unless the address is loopback."`
	TLSKeyFile          string        `name:"tls-key-file" type:"path" help:"Key (PEM) of the certificate."`
	CardSignatures      string        `enum:"off,continuity,required" default:"continuity" help:"Signatures required of new cards (${enum}). continuity: once an agent has registered a key, its later cards must be signed with it."`
	CardIssuerKeysFile  string        `type:"path" help:"File of public keys that may sign every agent's cards: one {key_id, algorithm, public_key} per line."`
	A2AAgentCards       []string      `name:"a2a-agent-cards" placeholder:"AGENT=FILE" help:"A2A agent cards to serve, each with the agent's current Alignment Card inside."`
	MessagePoliciesFile string        `type:"path" help:"Message policies: what each agent accepts from whom, and the action classes of its tools (docs/MESSAGES.md)."`
	WebhooksFile        string        `type:"path" help:"File of the HTTP endpoints that get alerts (docs/WEBHOOKS.md)."`
	SealIdle            time.Duration `help:"Seal a session that has had no trace for this long."`
	Redact              []string      `default:"all" placeholder:"RULE" help:"Redaction rules for bundles in addition to those of the draft: all, none, or some of authorization, header_list, name_value, url, assignment, yaml, xml, repr, unicode, base64 (docs/BUNDLES.md)."`
	SealSchedule        []string      `sep:";" placeholder:"CRON" help:"Times at which all open sessions are also sealed: cron expressions of five fields, or @daily, @every 6h and similar, in UTC unless one begins with CRON_TZ=."`
	DriftMode           string        `default:"sessions" values:"sessions,first,rolling,pinned" help:"Source of drift's baselines: sessions (the traces until ten of the agent's sessions are complete), first (its first traces), rolling (its latest traces, updated after every window), pinned (set with plumbline drift pin)."`
	DriftResidentBytes  int64         `help:"Memory for the series of drift (an agent under a card), without garbage. Others are read from the database when they get a trace."`
	Memory              int64         `help:"Memory limit of the embedded engine in MiB, at least 512."`
	DrainBudget         time.Duration `default:"30s" help:"Time to finish the work in progress after the first SIGTERM."`
	LogLevel            string        `default:"warn" values:"debug,info,warn,error" help:"Lowest level that is logged: debug, info, warn or error."`
	LogFormat           string        `default:"text" values:"json,text" help:"Format of the log: json or text."`
	JSON                bool          `help:"Print the addresses as one JSON object, without passwords. endpoints.json in the data directory (mode 0600) has the passwords."`

	Connections admission.Config `embed:"" group:"Connections of publishers"`

	OTLP config.OTLP `embed:"" prefix:"otlp-" group:"Own metrics and spans over OTLP (docs/OTEL.md)"`

	DriftComparison drift.Comparison `embed:"" prefix:"drift-" group:"What drift compares with, in modes sessions and pinned (docs/DRIFT.md)"`

	Thresholds machine.Thresholds `embed:"" group:"Thresholds, if they differ from the published ones (AAP section 8.3)"`

	Copies  exporter.Copies  `embed:"" group:"Copies of bundles"`
	Anchors exporter.Anchors `embed:"" group:"Evidence for bundles in addition to their signature"`

	Ports machine.Ports `embed:"" group:"Ports of the embedded servers"`

	NATS       config.NATS       `embed:"" prefix:"nats-" group:"Your own broker instead of the embedded one"`
	ClickHouse config.ClickHouse `embed:"" prefix:"clickhouse-" group:"Your own database instead of the embedded one"`
}

// stageKeys returns the settings of each service, of which a file may have a section.
func stageKeys() map[string][]string {
	var accept struct {
		ingest.Config `embed:""`
		Reading       reading.Config `embed:""`
	}
	return map[string][]string{
		machine.Ingest: config.Keys(&accept), machine.Verifier: config.Keys(new(verifier.Config)),
		machine.Drift: config.Keys(new(drift.Config)), machine.Exporter: config.Keys(new(exporter.Config)),
		machine.Console: config.Keys(new(web.Config)), machine.Webhooks: config.Keys(new(webhook.Config)),
	}
}

// Help returns the examples.
func (*upCommand) Help() string {
	return examples(
		"plumbline up",
		"plumbline up --data /var/lib/plumbline --listen 0.0.0.0:8080 --token-file tokens.jsonl",
		"plumbline up --config plumbline.yaml --print-config",
		"plumbline up --clickhouse-port 9000 --nats-port 4222",
		"plumbline up --seal-schedule '0 3 * * *'",
		"plumbline up --nats-url nats://nats.example:4222 --clickhouse-dsn clickhouse://user:password@db.example:9000/plumbline",
	)
}

// stopGrace is how long broker and engine may take to end after the stages have drained.
const stopGrace = 20 * time.Second

// Run runs everything until a signal comes or a stage fails.
func (c *upCommand) Run(ctx context.Context, con *console) error {
	if c.PrintConfig {
		if err := config.Usage(con.faults); err != nil {
			return err
		}
		return con.settings.Print(con.out)
	}
	m, err := machine.Start(ctx, c.config(con))
	if err != nil {
		return err
	}
	withdraw := announceMachine(con, m.Endpoints())
	err = c.announce(con, m.Endpoints())
	if err == nil {
		err = m.Wait(ctx)
	}
	err = errors.Join(err, withdraw())
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.DrainBudget+stopGrace)
	defer cancel()
	return errors.Join(err, m.Stop(stopping))
}

// announceMachine notes in the user's state directory where this machine runs, so that commands find it from
// every directory. Without such a directory they need --data.
func announceMachine(con *console, at machine.Endpoints) (withdraw func() error) {
	state, err := machine.StateDir()
	if err == nil {
		withdraw, err = machine.Announce(state, at)
	}
	if err != nil {
		fmt.Fprintf(con.errs, "plumbline: commands in other directories need --data %s: %s\n", at.DataDir, errorText(err))
		return func() error { return nil }
	}
	return withdraw
}

// config returns the configuration of the flags; machine.Start reports their faults with all others.
func (c *upCommand) config(con *console) machine.Config {
	faults := con.faults
	for _, fault := range config.LogFaults(c.LogFormat, c.LogLevel) {
		faults = append(faults, fault.String())
	}
	log, err := obs.NewLogger(con.errs, c.LogFormat, c.LogLevel)
	if err != nil {
		log = slog.New(slog.DiscardHandler)
	}
	obs.TakeStandardLog(log)
	return machine.Config{
		Faults:  faults,
		DataDir: c.Data, Listen: c.Listen, OTLPGRPC: c.OTLPGRPCListen, Console: c.console(), TokenFile: c.TokenFile, TLSCertFile: c.TLSCertFile, TLSKeyFile: c.TLSKeyFile,
		CardSignatures: c.CardSignatures, CardIssuerKeysFile: c.CardIssuerKeysFile, A2AAgentCards: c.A2AAgentCards, MessagePoliciesFile: c.MessagePoliciesFile, WebhooksFile: c.WebhooksFile,
		Ports: c.Ports, NATS: c.NATS, ClickHouse: c.ClickHouse, Copies: c.Copies, Anchors: c.Anchors,
		DriftMode: c.DriftMode, DriftResidentBytes: c.DriftResidentBytes, DriftComparison: &c.DriftComparison, Thresholds: &c.Thresholds, Connections: &c.Connections, OTLP: &c.OTLP,
		SealIdle: c.SealIdle, SealSchedule: c.SealSchedule, Redact: c.Redact, MemoryBytes: c.Memory << 20, DrainBudget: c.DrainBudget,
		Version: service.BuildVersion(), Log: log,
		Progress: func(message string) { fmt.Fprintln(con.errs, message) }, Fetching: con.fetching,
	}
}

// console returns the address of the console; none where empty.
func (c *upCommand) console() string {
	if c.ConsoleListen == "none" {
		return ""
	}
	return c.ConsoleListen
}

// announce prints where everything is reached.
func (c *upCommand) announce(con *console, at machine.Endpoints) error {
	public := at.WithoutSecrets() // users pass on and log the printed text
	if c.JSON {
		return writeJSON(con.out, public)
	}
	tokens := at.TokenFile
	if tokens == "" {
		tokens = "none needed on this machine; plumbline token new makes one, the next start requires it"
	}
	query, dsn := "query", public.ClickHouseDSN
	if at.ClickHouseHTTP != "" { // the embedded engine's reader, for people who copy it from here
		query, dsn = "query (read-only)", at.ClickHouseDSN
	}
	err := writeRows(con.out, [][]any{ // without the rows of external servers, which are empty
		{"console", at.ConsoleURL},
		{"publish to", at.IngestURL},
		{"OTLP/gRPC", at.OTLPGRPC},
		{"tokens", tokens},
		{"health, metrics", at.IngestURL + "/readyz, /metrics"},
		{query, dsn},
		{"query over HTTP", at.ClickHouseHTTP},
		{"bundles", at.Bundles},
		{"signing key", at.PublicKey},
		{"data directory", at.DataDir},
		{"limits of this evidence", at.IngestURL + "/v1/limitations"},
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(con.out, "Ready. Ctrl-C stops it.")
	return err
}
