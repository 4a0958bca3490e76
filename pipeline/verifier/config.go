package verifier

import (
	"log/slog"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/messages"
)

type Config struct {
	config.Common `embed:""`
	ClickHouse    config.ClickHouse `embed:"" prefix:"clickhouse-"`
	Cards         config.Cards      `embed:"" prefix:"card-"`
	Rules         `embed:""`

	MessagePoliciesFile string `help:"The policies that ingest applies to messages (docs/MESSAGES.md). The traces of their agents are checked against them, too. Without it no trace is." type:"path"`

	BatchRows  int           `help:"Maximum number of traces in one insert."`
	BatchBytes int           `help:"Maximum size of the traces in one insert, in bytes."`
	BatchAge   time.Duration `help:"How long a trace waits for others before it is inserted; half as long if a thousand wait, twice as long in a backlog."`

	TakeoverAfter time.Duration `help:"How long another verifier may be connected to the broker and not answer until its partitions go to the others. Those of one that was killed go to them sooner."`
}

// Rules determine a verdict, together with the trace and the registry.
type Rules struct {
	BehavioralSimilarity float64 `help:"A trace without violations that is less similar to its card gets the warning low_behavioral_similarity (AAP section 8.3)."`
	Methodology          string  `help:"How the threshold was derived, if it is not the published one (AAP section 8.3). Every verdict and alert contains this text."`
}

// DefaultRules returns the published thresholds.
func DefaultRules() Rules {
	return Rules{BehavioralSimilarity: aap.DefaultThresholds().BehavioralSimilarity}
}

func (r *Rules) Validate() (faults config.Faults) {
	faults.CheckThreshold("behavioral_similarity", r.BehavioralSimilarity, DefaultRules().BehavioralSimilarity, r.Methodology)
	return faults
}

// Default returns the configuration of a verifier that serves its operator's interface on this
// stage's port.
func Default() Config {
	return Config{
		Common:     config.DefaultCommon("127.0.0.1:8082"),
		ClickHouse: config.DefaultClickHouse(),
		Cards:      config.Cards{CacheBytes: 4 * config.DefaultCardCacheBytes}, // every trace is judged by a card
		Rules:      DefaultRules(),
		BatchRows:  50_000,
		BatchBytes: 64 << 20,
		BatchAge:   time.Second,

		TakeoverAfter: 8 * time.Second,
	}
}

func (c *Config) Validate() []config.Fault {
	faults := append(config.Faults(c.Common.Validate()), c.ClickHouse.Validate()...)
	faults = append(faults, c.Cards.Validate()...)
	faults = append(faults, c.Rules.Validate()...)
	faults.Check(c.BatchRows > 0, "batch_rows", "%d: want at least 1", c.BatchRows)
	faults.Check(c.BatchBytes > 0, "batch_bytes", "%d: want at least 1", c.BatchBytes)
	faults.Check(c.TakeoverAfter >= time.Second, "takeover_after", "%s: want at least 1s", c.TakeoverAfter)
	faults.Check(c.BatchAge > 0, "batch_age", "%s: want more than 0", c.BatchAge)
	return faults
}

// FileFaults returns the faults of the files that the configuration names.
func (c *Config) FileFaults() []config.Fault {
	faults := config.Faults(c.Common.FileFaults())
	_, err := messages.OpenPolicies(c.MessagePoliciesFile, false, slog.New(slog.DiscardHandler))
	faults.Check(err == nil, "message_policies_file", "%v", err)
	return faults
}

// BatchFull reports whether no further trace may join a batch.
func (c *Config) BatchFull(traces, bytes int) bool {
	return traces >= c.BatchRows || bytes >= c.BatchBytes
}
