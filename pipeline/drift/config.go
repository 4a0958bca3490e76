package drift

import (
	"strings"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/run"
)

// Config is what a drift stage is told.
type Config struct {
	run.Common `embed:""`
	ClickHouse run.ClickHouse `embed:"" prefix:"clickhouse-"`

	Lateness      time.Duration `help:"How long a trace waits for older ones of its agent that arrive after it, in the broker's time."`
	WaitingTraces int           `help:"Most traces of a partition that wait; one more, and the oldest waits no longer."`
	WaitingBytes  int           `help:"Most bytes of messages of a partition that wait, likewise."`
	BatchRows     int           `help:"Most points of a partition in one insert."`
	BatchAge      time.Duration `help:"How often points, alerts and states are stored."`

	SimilarityThreshold float64 `help:"A trace less similar to its agent's baseline is low (AAP section 8.3)."`
	Sustained           int     `help:"Consecutive low traces that raise an alert (AAP section 8.3)."`
	Window              int     `help:"Traces that a reader looks back at; the baseline is taken from a quarter of them, at most ten."`
	Mode                string  `help:"Where baselines come from: first (each agent's first traces), rolling (its last ones, anew after every window) or pinned (the operator's, from a file)."`
	Pins                string  `type:"path" help:"File of pinned baselines, as plumbline drift pin writes it; for mode pinned."`
	Methodology         string  `help:"Why a threshold is not the published one; it stands in every point and alert."`
}

// mostWaiting leaves room, within what the broker delivers unacknowledged, for
// what is applied and not yet stored.
const mostWaiting = 50_000

// Default returns the configuration of a drift stage that serves its operator's
// interface on the port of this stage.
func Default() Config {
	published := aapdrift.DefaultParams()
	return Config{
		Common:              run.DefaultCommon("127.0.0.1:8083"),
		ClickHouse:          run.DefaultClickHouse(),
		Lateness:            2 * time.Second,
		WaitingTraces:       mostWaiting,
		WaitingBytes:        64 << 20,
		BatchRows:           10_000,
		BatchAge:            250 * time.Millisecond,
		SimilarityThreshold: published.SimilarityThreshold,
		Sustained:           published.Sustained,
		Window:              published.Window,
		Mode:                string(published.Mode),
	}
}

// Validate returns every fault.
func (c *Config) Validate() []run.Fault {
	faults := append(run.Faults(c.Common.Validate()), c.ClickHouse.Validate()...)
	faults.Check(c.Lateness >= 0, "lateness", "%s: want at least 0", c.Lateness)
	faults.Check(c.WaitingTraces > 0 && c.WaitingTraces <= mostWaiting, "waiting_traces", "%d: want 1 to %d", c.WaitingTraces, mostWaiting)
	faults.Check(c.WaitingBytes > 0, "waiting_bytes", "%d: want at least 1", c.WaitingBytes)
	faults.Check(c.BatchRows > 0 && c.BatchRows <= mostWaiting, "batch_rows", "%d: want 1 to %d", c.BatchRows, mostWaiting)
	faults.Check(c.BatchAge > 0, "batch_age", "%s: want more than 0", c.BatchAge)
	faults = append(faults, paramFaults(c.params().Validate())...)
	pinned := c.params().Mode == aapdrift.ModePinned
	faults.Check(!pinned || c.Pins != "", "pins", "is empty: mode %s takes its baselines from a file, which plumbline drift pin makes", c.Mode)
	faults.Check(pinned || c.Pins == "", "pins", "%s: only mode %s reads it", c.Pins, aapdrift.ModePinned)
	published := aapdrift.DefaultParams()
	published.Mode = c.params().Mode // which each point and alert names
	faults.Check(c.params() == published || c.Methodology != "", "methodology", "a threshold is not the published one: say why (AAP section 8.3)")
	return faults
}

// paramFaults takes joined errors of the form "key: message" apart.
func paramFaults(err error) (faults []run.Fault) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		key, message, _ := strings.Cut(err.Error(), ": ")
		faults = append(faults, run.Fault{Key: key, Message: message})
	}
	return faults
}

func (c *Config) params() aapdrift.Params {
	return aapdrift.Params{
		SimilarityThreshold: c.SimilarityThreshold,
		Sustained:           c.Sustained,
		Window:              c.Window,
		Mode:                aapdrift.Mode(c.Mode),
		Profile:             aapdrift.ProfileSpec,
	}
}

func (c *Config) patience() patience {
	return patience{lateness: c.Lateness, messages: c.WaitingTraces, bytes: c.WaitingBytes}
}
