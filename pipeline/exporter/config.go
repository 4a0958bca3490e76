package exporter

import (
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/destination/s3"
)

// Config configures the exporter.
type Config struct {
	config.Common `embed:""`
	ClickHouse    config.ClickHouse `embed:"" prefix:"clickhouse-"`
	Cards         config.Cards      `embed:"" prefix:"card-"`

	DataDir      string        `help:"Directory of what the exporter keeps." type:"path"`
	BundleDir    string        `help:"Directory of the sealed bundles, a folder for each agent; empty for bundles/ in the data directory." type:"path"`
	KeyFile      string        `help:"Signing key: exactly 32 raw bytes, mode 0600, made where it is missing; empty for keys/session.key in the data directory." type:"path"`
	Every        time.Duration `help:"How often sessions that are due are sealed."`
	Idle         time.Duration `help:"A session is sealed when no trace came for this long."`
	Schedule     []string      `sep:";" placeholder:"CRON" help:"When whatever is open is sealed, as cron expressions of five fields or @daily, @every 6h and the like, in UTC where one does not begin with CRON_TZ=. The session goes on in the next part."`
	RotateRows   int           `help:"Most traces of one bundle; the session goes on in the next part."`
	RotateBytes  int64         `help:"Most bytes of the traces of one bundle. Three bundles are sealed at a time, each in some ten times this much memory."`
	RotateAge    time.Duration `help:"A session that is open for this long is sealed and goes on in the next part."`
	OutputLimit  int           `help:"Most characters of a tool's outputs in a row; longer ones are truncated. 0 for no limit."`
	Redact       []string      `placeholder:"RULE" help:"Rules by which secrets are hidden beyond those of the draft, counted apart (docs/BUNDLES.md): all, none, or some of authorization, header_list, name_value, url, assignment, yaml, xml, repr, unicode, base64."`
	Generator    string        `help:"Who makes the bundles, as their manifest says."`
	GeneratorURL string        `name:"generator-url" help:"Where that is explained."`

	Copies  Copies  `embed:""`
	Anchors Anchors `embed:""`
}

// Copies configures destinations for copies of bundles (docs/DESTINATIONS.md).
type Copies struct {
	ObjectStore string    `placeholder:"NAME" help:"Object store of the broker that gets a copy of every bundle; made where it is missing. Empty for none."`
	S3          s3.Config `embed:"" prefix:"s3-"`
}

// Default returns the configuration of an exporter below the current directory.
func Default() Config {
	return Config{
		Common:       config.DefaultCommon("127.0.0.1:8084"),
		ClickHouse:   config.DefaultClickHouse(),
		Cards:        config.DefaultCards(),
		DataDir:      "plumbline-data",
		Every:        500 * time.Millisecond,
		Idle:         30 * time.Minute,
		RotateRows:   10_000,
		RotateBytes:  32 << 20,
		RotateAge:    30 * 24 * time.Hour,
		OutputLimit:  redact.DefaultOutputLimit,
		Redact:       []string{"all"},
		Generator:    "Plumbline",
		GeneratorURL: "https://github.com/plumbline/plumbline",
		Copies:       Copies{S3: s3.Default()},
	}
}

// Validate returns every fault.
func (c *Config) Validate() []config.Fault {
	faults := append(config.Faults(c.Common.Validate()), c.ClickHouse.Validate()...)
	faults = append(faults, c.Cards.Validate()...)
	faults.Check(c.DataDir != "", "data_dir", "is empty")
	faults.Check(c.Every > 0, "every", "%s: want more than 0", c.Every)
	faults.Check(c.Idle > 0, "idle", "%s: want more than 0", c.Idle)
	faults = append(faults, ScheduleFaults("schedule", c.Schedule)...)
	faults.Check(c.RotateRows > 0, "rotate_rows", "%d: want at least 1", c.RotateRows)
	faults.Check(c.RotateBytes > 0, "rotate_bytes", "%d: want at least 1", c.RotateBytes)
	faults.Check(c.RotateAge > 0, "rotate_age", "%s: want more than 0", c.RotateAge)
	faults.Check(c.OutputLimit == 0 || c.OutputLimit >= redact.LeastOutputLimit, "output_limit", "%d: want 0 or at least %d", c.OutputLimit, redact.LeastOutputLimit)
	faults = append(faults, RedactFaults(c.Redact)...)
	faults = append(faults, c.Copies.Validate()...)
	return append(faults, c.Anchors.Validate()...)
}

// FileFaults returns the faults of the files that the configuration names.
func (c *Config) FileFaults() []config.Fault {
	return slices.Concat(c.Common.FileFaults(), c.Copies.S3.FileFaults(), c.Anchors.FileFaults())
}

// objectStoreName matches the names that the broker accepts.
var objectStoreName = regexp.MustCompile(`^[a-zA-Z0-9_-]*$`)

// Validate returns every fault.
func (c *Copies) Validate() (faults config.Faults) {
	faults.Check(objectStoreName.MatchString(c.ObjectStore), "object_store", "%q: want a name of a-z, A-Z, 0-9, _ and -", c.ObjectStore)
	return append(faults, c.S3.Validate()...)
}

// RedactFaults returns the faults of names that are not redaction rules.
func RedactFaults(names []string) (faults config.Faults) {
	_, err := redact.ParseRules(names)
	faults.Check(err == nil, "redact", "%v", err)
	return faults
}

// bundleDir returns the directory of bundles.
func (c *Config) bundleDir() string {
	if c.BundleDir != "" {
		return c.BundleDir
	}
	return filepath.Join(c.DataDir, "bundles")
}

// ledgerDir returns the directory of the operator's ledger.
func (c *Config) ledgerDir() string { return filepath.Join(c.DataDir, "ledger") }

// keyFile returns the path of the signing key.
func (c *Config) keyFile() string {
	if c.KeyFile != "" {
		return c.KeyFile
	}
	return filepath.Join(c.DataDir, "keys", "session.key")
}
