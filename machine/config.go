package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/api"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/webhook"
	"github.com/plumbline/plumbline/web"
)

// The stages, in the order in which a trace passes through them.
const (
	Ingest   = "ingest"
	Verifier = "verifier"
	Drift    = "drift"
	Exporter = "exporter"
)

// Console is the section of the console's settings. The console is no stage: no trace passes through it.
const Console = "console"

// Webhooks is the section of the settings of webhooks, which is no stage either.
const Webhooks = "webhooks"

// ConsoleAnywhere is an address of the console: on 127.0.0.1, the port after that of ingest, or any free one if
// that is taken.
const ConsoleAnywhere = "auto"

// Stages returns all stages in their order.
func Stages() []string { return []string{Ingest, Verifier, Drift, Exporter} }

// Config configures a machine. Every member has a default.
type Config struct {
	DataDir   string // used by this machine alone, created when missing; "./plumbline-data"
	Listen    string // address of ingest, port 0 for a free one; "127.0.0.1:8080"
	OTLPGRPC  string // address of ingest for spans over OTLP/gRPC, port 0 for a free one; none where empty
	Console   string // address of the console, port 0 for a free one, or ConsoleAnywhere; none where empty
	TokenFile string // lists who may publish (package auth); tokens.jsonl of DataDir where that exists, otherwise needed only beyond loopback

	CardSignatures     string // how strictly new cards must be signed (ingest.Config); ingest's default where empty
	CardIssuerKeysFile string // keys that may sign every agent's cards (ingest.Config); none where empty

	A2AAgentCards []string // AGENT=FILE of the A2A agent cards to serve (ingest.Config); none where empty

	MessagePoliciesFile string // what each agent accepts from whom (pipeline/messages), for ingest and verifier; none where empty

	WebhooksFile string // the endpoints that get alerts (package pipeline/webhook); none where empty

	TLSCertFile, TLSKeyFile string // PEM files for HTTPS (TLS 1.3); plain HTTP where empty

	Copies  exporter.Copies  // where bundles are copied in addition to the data directory; no copies where empty
	Anchors exporter.Anchors // time stamps and a log of bundles, in addition to their signature; none where empty

	OTLP *config.OTLP // where own metrics and spans are sent; nowhere where nil

	Connections *admission.Config // bounds on publishers' connections; ingest's default where nil

	NATS       config.NATS       // an external broker; embedded where URL is empty
	ClickHouse config.ClickHouse // an external database; embedded where DSN is empty

	Ports Ports // of the embedded servers

	Tenant             string        // "default"
	Stages             []string      // the stages that Start starts; all where nil, none where empty
	MemoryBytes        int64         // memory bound of the embedded engine; the engine's default where 0
	DrainBudget        time.Duration // how long the stages may take to finish their work in Stop; 30 s
	SealIdle           time.Duration // a session without traces for this long is sealed; the exporter's default where 0
	Redact             []string      // redaction rules in addition to the draft's (exporter.Config); its default where nil
	SealSchedule       []string      // cron expressions; at these times all open sessions are sealed; none where empty
	Thresholds         *Thresholds   // of AAP section 8.3; the published ones where nil
	DriftMode          string        // source of drift's baselines: sessions, first, rolling, pinned; the stage's default where empty
	DriftResidentBytes int64         // memory for the series of drift; the stage's default where 0
	Version            string        // of the program, for metrics; "dev"
	Log                *slog.Logger  // slog.Default()
	Progress           func(string)  // called with a short message before each slow step; optional

	DriftComparison *drift.Comparison // what forms a baseline of sessions, and how sure an alarm is; the stage's default where nil

	Fetching func(size int64, fetched func() int64) (end func()) // shows the download of the engine (engine.Options); optional

	Faults []string // faults that the reader of the settings found earlier; reported with the others
}

// Ports are the ports of the embedded servers on 127.0.0.1. 0 is the port of the last start in the
// data directory, or a free one.
type Ports struct {
	NATSPort           int `name:"nats-port" placeholder:"PORT" help:"Port of the embedded broker on 127.0.0.1. Default: that of the last start; any free port at the first one."`
	ClickHousePort     int `name:"clickhouse-port" placeholder:"PORT" help:"Port of the embedded engine (native protocol, the DSN) on 127.0.0.1. Default: that of the last start; any free port at the first one."`
	ClickHouseHTTPPort int `name:"clickhouse-http-port" placeholder:"PORT" help:"HTTP port of the embedded engine on 127.0.0.1. Default: that of the last start; any free port at the first one."`
}

func (c *Config) checkPorts(faults *config.Faults) {
	for _, p := range []struct {
		key      string
		port     int
		external bool
		server   string
	}{
		{"nats_port", c.Ports.NATSPort, c.NATS.URL != "", "nats_url names another broker"},
		{"clickhouse_port", c.Ports.ClickHousePort, c.ClickHouse.DSN != "", "clickhouse_dsn names another database"},
		{"clickhouse_http_port", c.Ports.ClickHouseHTTPPort, c.ClickHouse.DSN != "", "clickhouse_dsn names another database"},
	} {
		faults.Check(p.port >= 0 && p.port < 1<<16, p.key, "%d: want a port from 1 to 65535", p.port)
		faults.Check(p.port == 0 || !p.external, p.key, "is for the embedded server, and %s", p.server)
	}
	taken := map[int]string{}
	for _, p := range []struct {
		key  string
		port int
	}{{"listen", c.listenPort()}, {"nats_port", c.Ports.NATSPort}, {"clickhouse_port", c.Ports.ClickHousePort}, {"clickhouse_http_port", c.Ports.ClickHouseHTTPPort}} {
		faults.Check(p.port == 0 || taken[p.port] == "", p.key, "%d: %s is the same", p.port, taken[p.port])
		taken[p.port] = p.key
	}
}

// listenPort returns the port of ingest if the embedded servers cannot have it, too; otherwise 0.
func (c *Config) listenPort() int {
	host, service, err := net.SplitHostPort(c.Listen)
	port, portErr := net.LookupPort("tcp", service)
	if ip := net.ParseIP(host); err != nil || portErr != nil || ip != nil && !ip.IsUnspecified() && !ip.Equal(net.IPv4(127, 0, 0, 1)) {
		return 0
	}
	return port
}

// complete fills in the defaults and returns every fault.
func (c *Config) complete() error {
	c.DataDir = cmp.Or(c.DataDir, "./plumbline-data")
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8080")
	c.Tenant = cmp.Or(c.Tenant, "default")
	c.DrainBudget = cmp.Or(c.DrainBudget, 30*time.Second)
	c.Version = cmp.Or(c.Version, "dev")
	c.NATS.Replicas = cmp.Or(c.NATS.Replicas, 1)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Copies.S3.Complete()
	if c.Thresholds == nil {
		published := PublishedThresholds()
		c.Thresholds = &published
	}
	if c.DriftComparison == nil {
		comparison := drift.DefaultComparison()
		c.DriftComparison = &comparison
	}
	if c.OTLP == nil {
		nowhere := config.DefaultOTLP()
		c.OTLP = &nowhere
	}
	if c.Stages == nil {
		c.Stages = Stages()
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	var err error
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if tokens := c.path(auth.FileName); c.TokenFile == "" && exists(tokens) {
		c.TokenFile = tokens
	}
	faults := c.Faults
	for _, fault := range c.validate() {
		faults = append(faults, fault.String())
	}
	return config.Usage(faults)
}

// validate finds the faults that can be found without starting anything: starting a server
// only to report a typing error takes seconds.
func (c *Config) validate() config.Faults {
	common := config.DefaultCommon("")
	common.Tenant, common.DrainBudget = c.Tenant, c.DrainBudget
	if c.NATS.URL != "" {
		common.NATS = c.NATS
	}
	common.OTLP = *c.OTLP
	faults := config.Faults(common.Validate())
	faults.CheckAddress("listen", c.Listen)
	faults = append(faults, ingest.OTLPGRPCFaults(c.OTLPGRPC, c.TokenFile)...)
	if c.Console != "" && c.Console != ConsoleAnywhere {
		faults.CheckAddress("console_listen", c.Console)
	}
	c.checkPorts(&faults)
	paired := (c.TLSCertFile == "") == (c.TLSKeyFile == "")
	faults.Check(paired, "tls_cert_file", "tls_cert_file and tls_key_file must be given together")
	for _, name := range c.Stages {
		faults.Check(slices.Contains(Stages(), name), "stages", "%q: want some of %v", name, Stages())
	}
	if c.ClickHouse.DSN != "" {
		faults = append(faults, c.ClickHouse.Validate()...)
	} else {
		faults.Check(c.ClickHouse.Cluster == "", "clickhouse_cluster", "the embedded engine is one server: a cluster also needs clickhouse_dsn")
	}
	enough := c.MemoryBytes == 0 || c.MemoryBytes >= engine.LeastMemory
	faults.Check(enough, "memory", "%d MiB: want at least %d", c.MemoryBytes>>20, engine.LeastMemory>>20)
	if c.Connections != nil {
		c.Connections.Validate(faults.Check)
	}
	switch aapdrift.Mode(c.DriftMode) {
	case "", aapdrift.ModeSessions, aapdrift.ModeFirst, aapdrift.ModeRolling:
	case aapdrift.ModePinned:
		_, err := drift.ReadPins(DriftPins(c.DataDir))
		faults.Check(err == nil, "drift_mode", "%v", err)
	default:
		faults.Check(false, "drift_mode", "%q: want sessions, first, rolling or pinned", c.DriftMode)
	}
	faults.Check(c.DriftResidentBytes == 0 || c.DriftResidentBytes >= drift.LeastResidentBytes, "drift_resident_bytes", "%d: want at least %d", c.DriftResidentBytes, drift.LeastResidentBytes)
	faults = append(faults, c.Thresholds.validate(*c.DriftComparison)...)
	faults.Check(c.SealIdle >= 0, "seal_idle", "%s: want more than 0", c.SealIdle)
	if c.Redact != nil {
		faults = append(faults, exporter.RedactFaults(c.Redact)...)
	}
	faults = append(faults, exporter.ScheduleFaults("seal_schedule", c.SealSchedule)...)
	faults = append(faults, c.Copies.Validate()...)
	faults = append(faults, c.Anchors.Validate()...)
	faults.Check(mayHold(c.DataDir), "data", "%s: it is a file, or it is below a file", c.DataDir)
	if slices.Contains(c.Stages, Ingest) {
		stage := c.ingest()
		faults = append(faults, stage.FileFaults()...)
	}
	faults = append(faults, webhook.Faults(c.WebhooksFile)...)
	if c.Console != "" && c.Console != ConsoleAnywhere && len(faults) == 0 { // otherwise the faults of ingest's files would be there twice
		console := c.console()
		for _, fault := range console.FileFaults() {
			faults.Check(false, "console_listen", "%s", fault.Message)
		}
	}
	return slices.Concat(faults, c.NATS.FileFaults(), c.OTLP.FileFaults(), c.Copies.S3.FileFaults(), c.Anchors.FileFaults())
}

// exists reports whether there is something with this name, be it unreadable: a token file that cannot
// be read is an error, and never means that no token is needed.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// mayHold reports whether a path is a directory or a directory could be created there.
func mayHold(path string) bool {
	info, err := os.Stat(path)
	if err == nil || path == filepath.Dir(path) {
		return err == nil && info.IsDir()
	}
	return mayHold(filepath.Dir(path))
}

// ingest returns the stage's configuration, as far as the user sets it.
func (c *Config) ingest() ingest.Config {
	stage := ingest.Default()
	stage.Listen, stage.OTLPGRPCListen, stage.TokenFile = c.Listen, c.OTLPGRPC, c.TokenFile
	stage.CardSignatures = cmp.Or(c.CardSignatures, stage.CardSignatures)
	stage.CardIssuerKeysFile, stage.A2AAgentCards = c.CardIssuerKeysFile, c.A2AAgentCards
	stage.TLSCertFile, stage.TLSKeyFile = c.TLSCertFile, c.TLSKeyFile
	stage.MessagePoliciesFile = c.MessagePoliciesFile
	if c.Connections != nil {
		stage.Connections = *c.Connections
	}
	stage.Rules = c.Thresholds.Ingest()
	return stage
}

// console returns the configuration of the console, as far as the user sets it.
func (c *Config) console() web.Config {
	console := web.Default()
	console.Listen, console.TokenFile = c.Console, c.TokenFile
	console.TLSCertFile, console.TLSKeyFile = c.TLSCertFile, c.TLSKeyFile
	return console
}

// DriftPins returns the path of the pinned baselines in a data directory.
func DriftPins(dataDir string) string { return filepath.Join(dataDir, "drift-pins.json") }

// path returns the path of a name within the data directory.
func (c *Config) path(names ...string) string {
	return filepath.Join(append([]string{c.DataDir}, names...)...)
}

// Thresholds are the four thresholds of AAP section 8.3. Each belongs to one stage, and is a
// setting of that stage where the stages run as separate processes.
type Thresholds struct {
	BehavioralSimilarity     float64 `json:"behavioral_similarity" help:"A trace without violations that is less similar to its card gets the warning low_behavioral_similarity."`
	MinCoherence             float64 `json:"min_coherence" help:"Minimum coherence score with which two agents may proceed."`
	DriftSimilarityThreshold float64 `json:"drift_similarity_threshold" help:"A trace that is less similar to its agent's baseline counts as low."`
	DriftSustained           int     `json:"drift_sustained" help:"Number of consecutive low traces that raises an alert."`
	Methodology              string  `json:"methodology" help:"How thresholds that differ from the published ones were derived. Required with such thresholds; every verdict, result and alert that depends on them names it."`
}

// PublishedThresholds returns the thresholds of the specification.
func PublishedThresholds() Thresholds {
	handshake, judge, watch := api.DefaultRules(), verifier.DefaultRules(), drift.DefaultRules()
	return Thresholds{
		BehavioralSimilarity:     judge.BehavioralSimilarity,
		MinCoherence:             handshake.MinCoherence,
		DriftSimilarityThreshold: watch.SimilarityThreshold,
		DriftSustained:           watch.Sustained,
	}
}

// Ingest returns the rules of the handshake. Ingest, Verifier and Drift set the methodology
// only where the threshold differs from the published one.
func (t Thresholds) Ingest() api.Rules {
	rules := api.DefaultRules()
	if t.MinCoherence != rules.MinCoherence {
		rules.MinCoherence, rules.Methodology = t.MinCoherence, t.Methodology
	}
	return rules
}

// Verifier returns the rules of verdicts.
func (t Thresholds) Verifier() verifier.Rules {
	rules := verifier.DefaultRules()
	if t.BehavioralSimilarity != rules.BehavioralSimilarity {
		rules.BehavioralSimilarity, rules.Methodology = t.BehavioralSimilarity, t.Methodology
	}
	return rules
}

// Drift returns the rules of drift with these thresholds.
func (t Thresholds) Drift(rules drift.Rules) drift.Rules {
	published := drift.DefaultRules()
	if t.DriftSimilarityThreshold != published.SimilarityThreshold || t.DriftSustained != published.Sustained {
		rules.SimilarityThreshold, rules.Sustained, rules.Methodology = t.DriftSimilarityThreshold, t.DriftSustained, t.Methodology
	}
	return rules
}

// validate returns every fault of the thresholds and of drift's comparison, under the names of these settings.
func (t Thresholds) validate(comparison drift.Comparison) config.Faults {
	handshake, judge, watch := t.Ingest(), t.Verifier(), t.Drift(drift.DefaultRules())
	watch.Comparison = comparison
	faults := append(handshake.Validate(), judge.Validate()...)
	for _, fault := range watch.Validate() {
		if fault.Key != "methodology" {
			fault.Key = "drift_" + fault.Key
		}
		faults = append(faults, fault)
	}
	return faults
}
