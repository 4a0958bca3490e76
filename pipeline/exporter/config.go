package exporter

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/destination/s3"
)

type Config struct {
	config.Common `embed:""`
	ClickHouse    config.ClickHouse `embed:"" prefix:"clickhouse-"`
	Cards         config.Cards      `embed:"" prefix:"card-"`

	TakeoverAfter time.Duration `help:"How long another exporter may be connected to the broker and not answer until its partitions go to the others. Those of one that was killed go to them sooner."`

	DataDir      string        `name:"data" aliases:"data-dir" help:"Data directory of the exporter." type:"path"`
	BundleDir    string        `help:"Directory of the sealed bundles, with a folder for each agent. Empty: bundles/ in the data directory." type:"path"`
	KeyFile      string        `help:"Signing key: exactly 32 raw bytes, mode 0600; created if it is missing. Empty: keys/session.key in the data directory." type:"path"`
	Every        time.Duration `help:"How often sessions that are due are sealed. After a round with few sessions, the next one waits four times as long."`
	Idle         time.Duration `name:"seal-idle" aliases:"idle" help:"A session without a new trace for this long is sealed."`
	Schedule     []string      `name:"seal-schedule" aliases:"schedule" sep:";" placeholder:"CRON" help:"Times at which all open sessions are sealed: cron expressions of five fields, or @daily, @every 6h and similar, in UTC unless one begins with CRON_TZ=. Later traces make the session's next part."`
	RotateRows   int           `help:"Maximum number of traces in one bundle; later traces make the session's next part."`
	RotateBytes  int64         `help:"Maximum size of the traces in one bundle, in bytes. Three bundles are sealed at a time; each needs about ten times this much memory."`
	RotateAge    time.Duration `help:"A session that is open for this long is sealed; later traces make its next part."`
	OutputLimit  int           `help:"Maximum length of a tool's outputs in a row, in characters; longer outputs are truncated. 0: no limit."`
	Redact       []string      `placeholder:"RULE" help:"Redaction rules in addition to those of the draft, counted separately (docs/BUNDLES.md): all, none, or some of authorization, header_list, name_value, url, assignment, yaml, xml, repr, unicode, base64."`
	Generator    string        `help:"Name of the program that makes the bundles, in their manifest."`
	GeneratorURL string        `name:"generator-url" help:"Web address that describes this program, in their manifest."`

	Copies  Copies  `embed:""`
	Anchors Anchors `embed:""`
}

// Copies configures destinations for copies of bundles (docs/DESTINATIONS.md).
type Copies struct {
	ObjectStore string    `placeholder:"NAME" help:"Object store of the broker that receives a copy of every bundle; created if it is missing. Empty: none."`
	S3          s3.Config `embed:"" prefix:"s3-"`
}

// Default returns the configuration of an exporter below the current directory.
func Default() Config {
	common := config.DefaultCommon("127.0.0.1:8084")
	common.Nice = config.BackgroundNice
	return Config{
		Common:        common,
		ClickHouse:    config.DefaultClickHouse(),
		Cards:         config.DefaultCards(),
		TakeoverAfter: 8 * time.Second,
		DataDir:       "plumbline-data",
		Every:         time.Second,
		Idle:          30 * time.Minute,
		RotateRows:    10_000,
		RotateBytes:   32 << 20,
		RotateAge:     30 * 24 * time.Hour,
		OutputLimit:   redact.DefaultOutputLimit,
		Redact:        []string{"all"},
		Generator:     "Plumbline",
		GeneratorURL:  "https://github.com/plumbline/plumbline",
		Copies:        Copies{S3: s3.Default()},
	}
}

func (c *Config) Validate() []config.Fault {
	faults := append(config.Faults(c.Common.Validate()), c.ClickHouse.Validate()...)
	faults = append(faults, c.Cards.Validate()...)
	faults.Check(c.TakeoverAfter >= time.Second, "takeover_after", "%s: want at least 1s", c.TakeoverAfter)
	faults.Check(c.DataDir != "", "data", "is empty")
	faults.Check(c.Every > 0, "every", "%s: want more than 0", c.Every)
	faults.Check(c.Idle > 0, "seal_idle", "%s: want more than 0", c.Idle)
	faults = append(faults, ScheduleFaults("seal_schedule", c.Schedule)...)
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

var objectStoreName = regexp.MustCompile(`^[a-zA-Z0-9_-]*$`)

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

func (c *Config) bundleDir() string {
	if c.BundleDir != "" {
		return c.BundleDir
	}
	return filepath.Join(c.DataDir, "bundles")
}

func (c *Config) ledgerDir() string { return filepath.Join(c.DataDir, "ledger") }

func (c *Config) keyFile() string {
	if c.KeyFile != "" {
		return c.KeyFile
	}
	return filepath.Join(c.DataDir, "keys", "session.key")
}

// schedules are the times at which all open sessions are sealed.
type schedules []cron.Schedule

// parseSchedules parses cron expressions: five fields, or @daily, @every 6h and similar. Times
// are UTC unless an expression begins with CRON_TZ=. The faults name the setting key.
func parseSchedules(key string, expressions []string) (parsed schedules, faults config.Faults) {
	for i, expression := range expressions {
		schedule, err := cron.ParseStandard(expression)
		faults.Check(err == nil, fmt.Sprintf("%s[%d]", key, i), "%q: %v", expression, err)
		if err == nil {
			parsed = append(parsed, schedule)
		}
	}
	return parsed, faults
}

// ScheduleFaults returns the faults of the cron expressions in the setting key.
func ScheduleFaults(key string, expressions []string) config.Faults {
	_, faults := parseSchedules(key, expressions)
	return faults
}

// after returns the first time of any schedule after t; zero where there is none.
func (s schedules) after(t time.Time) (first time.Time) {
	for _, schedule := range s {
		if next := schedule.Next(t.UTC()); first.IsZero() || !next.IsZero() && next.Before(first) {
			first = next
		}
	}
	return first
}
