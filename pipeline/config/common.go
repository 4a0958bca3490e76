package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Config is a command's configuration: a struct that embeds Common, and whose other fields kong
// can set.
type Config interface {
	// Validate returns every fault, each with the key of its setting.
	Validate() []Fault
	// FileFaults returns the faults of the files that the settings name. It runs before anything
	// is started.
	FileFaults() []Fault
	// Shared returns the settings that every service has.
	Shared() *Common
}

// Fault is one fault of a configuration. Key is the setting's YAML key.
type Fault struct {
	Key     string
	Message string
}

// String returns "key: message".
func (f Fault) String() string { return f.Key + ": " + f.Message }

// Common is the configuration that every service has.
type Common struct {
	Tenant      string        `help:"The tenant that this process works for; every row names it."`
	LogLevel    string        `help:"Lowest level that is logged: debug, info, warn or error."`
	LogFormat   string        `help:"Format of the log: json or text."`
	AdminListen string        `help:"Address for /healthz, /readyz, /metrics and /v1/limitations. Empty: none."`
	DrainBudget time.Duration `help:"Time to finish the work in progress after the first SIGTERM."`
	Nice        int           `help:"Niceness of this process, 0 to 19, on Linux. A higher one that it was started with stays. Where CPU is short, processes with a lower one come first (docs/OPERATIONS.md)."`

	NATS NATS `embed:"" prefix:"nats-"`
	OTLP OTLP `embed:"" prefix:"otlp-"`
}

// NATS configures the connection to the broker. URL alone is enough for a broker on this machine.
// At most one way to log in may be set.
type NATS struct {
	URL             string `name:"url" help:"Address of the broker: nats://host:port or tls://host:port, several separated by commas." secret:"userinfo"`
	CredentialsFile string `help:"Log in with this credentials file (JWT and seed)." type:"path"`
	NKeySeedFile    string `name:"nkey-seed-file" help:"Log in with the nkey seed in this file." type:"path"`
	User            string `help:"Log in as this user."`
	Password        string `help:"Password of the user." secret:""`
	Token           string `help:"Log in with this token." secret:""`
	InboxPrefix     string `help:"Prefix of the subjects on which the broker's answers arrive, if the broker separates users (docs/NATS.md). Empty: _INBOX."`
	CAFile          string `name:"ca-file" help:"Certificate authority (PEM) that the broker's certificate is checked against." type:"path"`
	CertFile        string `help:"Client certificate (PEM) for the broker." type:"path"`
	KeyFile         string `help:"Key (PEM) of the client certificate." type:"path"`
	MonitorURL      string `name:"monitor-url" help:"Addresses of the broker's monitoring pages, one for each server of a cluster, separated by commas. Empty: the broker's sync_interval is not checked." secret:"userinfo"`
	Replicas        int    `help:"Replicas of each stream and bucket that is created."`
	AllowUnsafe     bool   `help:"Work with a broker whose settings can lose acknowledged traces (docs/GUARANTEES.md)."`
}

// ClickHouse configures the connection to the database. Commands that store or read rows embed
// it: ClickHouse config.ClickHouse `embed:"" prefix:"clickhouse-"`.
type ClickHouse struct {
	DSN         string `name:"dsn" help:"Address of the database, native protocol: clickhouse://user:password@host:9000/plumbline. For TLS 1.3 add ?secure=true&ca_file=FILE, and &cert_file=FILE&key_file=FILE if the server requires a certificate." secret:"userinfo"`
	Cluster     string `placeholder:"NAME" help:"ClickHouse cluster over which the tables are distributed, by the name that its servers use (docs/SCALING.md). Empty: one server."`
	AllowUnsafe bool   `help:"Work with a database whose settings can lose acknowledged traces (docs/GUARANTEES.md)."`
}

// Cards limits the memory of the registry of cards. Services that look cards up embed it: Cards
// config.Cards `embed:"" prefix:"card-"`.
type Cards struct {
	CacheBytes int64 `help:"Memory for compiled cards. Those that do not fit are read from the broker again when they are needed."`
}

// A card takes about 5 to 11 KB: 64 MiB hold 6,000 to 13,000 cards.
const (
	DefaultCardCacheBytes = 64 << 20
	leastCardCacheBytes   = 1 << 20
)

// DefaultCards returns the defaults.
func DefaultCards() Cards { return Cards{CacheBytes: DefaultCardCacheBytes} }

// Validate returns every fault.
func (c *Cards) Validate() (faults Faults) {
	faults.Check(c.CacheBytes >= leastCardCacheBytes, "card_cache_bytes", "%d: want at least %d", c.CacheBytes, leastCardCacheBytes)
	return faults
}

// BackgroundNice is the niceness of drift and exporter by default. Nobody waits for their results as publishers
// wait for answers and analysts for verdicts, so those come first (ADR 36).
const BackgroundNice = 10

// DefaultCommon returns the defaults, with the address of the service's admin interface ("" for
// none).
func DefaultCommon(adminListen string) Common {
	return Common{
		Tenant:      "default",
		LogLevel:    "info",
		LogFormat:   obs.FormatJSON,
		AdminListen: adminListen,
		DrainBudget: 30 * time.Second,
		NATS:        NATS{URL: "nats://127.0.0.1:4222", Replicas: 1},
		OTLP:        DefaultOTLP(),
	}
}

// DefaultClickHouse returns the defaults: a server on this machine.
func DefaultClickHouse() ClickHouse {
	return ClickHouse{DSN: "clickhouse://default@127.0.0.1:9000/plumbline"}
}

// Shared returns c: a configuration that embeds Common has it.
func (c *Common) Shared() *Common { return c }

// Validate returns the faults of the common settings. A command's own Validate
// appends to them.
func (c *Common) Validate() []Fault {
	var faults Faults
	faults.Check(schema.PlainName(c.Tenant), "tenant", "%q: want 1 to 64 of a-z, A-Z, 0-9, _ and -", c.Tenant)
	faults = append(faults, LogFaults(c.LogFormat, c.LogLevel)...)
	faults.CheckAddress("admin_listen", c.AdminListen)
	faults.Check(c.DrainBudget > 0, "drain_budget", "%s: want more than 0", c.DrainBudget)
	faults.Check(c.Nice >= 0 && c.Nice <= 19, "nice", "%d: want 0 to 19", c.Nice)
	c.NATS.validate(&faults)
	return append(faults, c.OTLP.Validate()...)
}

// LogFaults returns the faults of the settings of a log.
func LogFaults(format, level string) (faults Faults) {
	_, err := obs.NewLogger(nil, format, "info")
	faults.Check(err == nil, "log_format", "%q: want json or text", format)
	_, err = obs.NewLogger(nil, obs.FormatJSON, level)
	faults.Check(err == nil, "log_level", "%q: want debug, info, warn or error", level)
	return faults
}

// FileFaults returns the faults of the files of NATS and OTLP. A command with files of its own appends to
// them.
func (c *Common) FileFaults() []Fault { return append(c.NATS.FileFaults(), c.OTLP.FileFaults()...) }

func (n *NATS) validate(faults *Faults) {
	for address := range strings.SplitSeq(n.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		// Do not repeat the address: it may contain a password.
		good := err == nil && u.Host != "" && slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme)
		faults.Check(good, "nats_url", "want nats://host:port or tls://host:port, several separated by commas")
	}
	logins := 0
	for _, given := range []string{n.CredentialsFile, n.NKeySeedFile, n.User, n.Token} {
		if given != "" {
			logins++
		}
	}
	faults.Check(logins <= 1, "nats_credentials_file", "give only one of nats_credentials_file, nats_nkey_seed_file, nats_user and nats_token")
	inbox := subject.CheckInboxPrefix(n.InboxPrefix)
	faults.Check(inbox == nil, "nats_inbox_prefix", "%v", inbox)
	paired := (n.CertFile == "") == (n.KeyFile == "")
	faults.Check(paired, "nats_cert_file", "nats_cert_file and nats_key_file are given together or not at all")
	faults.Check(n.Replicas >= 1 && n.Replicas <= 5, "nats_replicas", "%d: want 1 to 5", n.Replicas)
}

// FileFaults returns a fault for each file that cannot be read.
func (n *NATS) FileFaults() []Fault {
	var faults Faults
	faults.CheckFile("nats_credentials_file", n.CredentialsFile)
	faults.CheckFile("nats_nkey_seed_file", n.NKeySeedFile)
	faults.CheckFile("nats_ca_file", n.CAFile)
	faults.CheckFile("nats_cert_file", n.CertFile)
	faults.CheckFile("nats_key_file", n.KeyFile)
	return faults
}

// Validate returns the faults of the database settings.
func (c *ClickHouse) Validate() []Fault {
	var faults Faults
	u, err := url.Parse(c.DSN)
	// Do not repeat the address: it may contain a password.
	native := err == nil && u.Host != "" && u.Scheme != "http" && u.Scheme != "https"
	faults.Check(native, "clickhouse_dsn", "want the native protocol, clickhouse://user:password@host:port/database")
	faults.Check(c.Cluster == "" || schema.PlainName(c.Cluster), "clickhouse_cluster", "%q: want 1 to 64 of a-z, A-Z, 0-9, _ and -", c.Cluster)
	return faults
}

// Faults collects the faults of a configuration.
type Faults []Fault

// Check adds a fault if ok is false.
func (f *Faults) Check(ok bool, key, format string, args ...any) {
	if !ok {
		*f = append(*f, Fault{Key: key, Message: fmt.Sprintf(format, args...)})
	}
}

// CheckThreshold adds a fault if a threshold of AAP section 8.3 is not within 0 to 1, or if it
// differs from the published one and has no methodology.
func (f *Faults) CheckThreshold(key string, value, published float64, methodology string) {
	f.Check(value >= 0 && value <= 1, key, "%v: want 0 to 1", value)
	f.Check(value == published || methodology != "", "methodology",
		"%s is not the published %v: say how it was derived (AAP section 8.3)", key, published)
}

// CheckAddress adds a fault if address is neither empty nor host:port.
func (f *Faults) CheckAddress(key, address string) {
	if address == "" {
		return
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	f.Check(err == nil, key, "%q: want host:port, with a port from 0 to 65535", address)
}

// CheckFile adds a fault if path is not empty and the file cannot be read.
func (f *Faults) CheckFile(key, path string) {
	if path == "" {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		f.Check(false, key, "%v", err)
		return
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	f.Check(err == nil && !info.IsDir(), key, "%s: want a file, found a directory", path)
}

// Err returns nil if there are no faults, otherwise an error that wraps ErrUsage and has a line
// for each fault.
func (f Faults) Err() error {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return Usage(lines)
}

// Usage returns nil if there are no faults, otherwise an error that wraps ErrUsage and has a line
// for each fault.
func Usage(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", ErrUsage, strings.Join(faults, "\n  "))
}
