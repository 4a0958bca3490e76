package verifier

import (
	"time"

	"github.com/plumbline/plumbline/pipeline/batch"
	"github.com/plumbline/plumbline/pipeline/run"
)

// Config is what a verifier is told.
type Config struct {
	run.Common `embed:""`
	ClickHouse run.ClickHouse `embed:"" prefix:"clickhouse-"`

	MessagePoliciesFile string `help:"The policies that ingest holds messages to (docs/MESSAGES.md): traces of their agents are held to them too. Without it none are." type:"path"`

	BatchRows  int           `help:"Most traces in one insert."`
	BatchBytes int           `help:"Most bytes of traces in one insert."`
	BatchAge   time.Duration `help:"How long a trace waits for company before it is inserted."`
}

// Default returns the configuration of a verifier that serves its operator's
// interface on the port of this stage.
func Default() Config {
	return Config{
		Common:     run.DefaultCommon("127.0.0.1:8082"),
		ClickHouse: run.DefaultClickHouse(),
		BatchRows:  50_000,
		BatchBytes: 64 << 20,
		BatchAge:   250 * time.Millisecond,
	}
}

// Validate returns every fault.
func (c *Config) Validate() []run.Fault {
	faults := append(run.Faults(c.Common.Validate()), c.ClickHouse.Validate()...)
	faults.Check(c.BatchRows > 0, "batch_rows", "%d: want at least 1", c.BatchRows)
	faults.Check(c.BatchBytes > 0, "batch_bytes", "%d: want at least 1", c.BatchBytes)
	faults.Check(c.BatchAge > 0, "batch_age", "%s: want more than 0", c.BatchAge)
	return faults
}

func (c *Config) limits() batch.Limits {
	return batch.Limits{Rows: c.BatchRows, Bytes: c.BatchBytes, Age: c.BatchAge}
}
