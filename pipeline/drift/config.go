package drift

import (
	"strings"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/config"
)

type Config struct {
	config.Common `embed:""`
	ClickHouse    config.ClickHouse `embed:"" prefix:"clickhouse-"`
	Cards         config.Cards      `embed:"" prefix:"card-"`
	Rules         `embed:""`

	BatchRows     int           `help:"Maximum number of points of a partition in one insert."`
	BatchAge      time.Duration `help:"How often points and alerts are stored."`
	CheckpointAge time.Duration `help:"How often states and positions are stored while traces come; at once where none waits. After a crash the traces since then are measured again."`

	ResidentBytes int64 `help:"Memory for the series (an agent under a card), at least; garbage comes to it. Those without a trace for the longest time leave it, and are read from ClickHouse again when they get one."`

	TakeoverAfter time.Duration `help:"How long another drift process may be connected to the broker and not answer until its partitions go to the others. Those of one that was killed go to them sooner."`
}

// Rules determine the result, together with the stream and the cards.
type Rules struct {
	Lateness      time.Duration `help:"How long a trace waits for older ones of its agent that arrive after it, in the broker's time."`
	WaitingTraces int           `help:"Maximum number of waiting traces of a partition. If there are more, the oldest is measured at once."`
	WaitingBytes  int           `help:"Maximum size of the waiting messages of a partition, in bytes. If they are larger, the oldest is measured at once."`

	SimilarityThreshold float64 `help:"A trace less similar to its agent's baseline counts as low (AAP section 8.3)."`
	Sustained           int     `help:"Consecutive low traces that raise an alert (AAP section 8.3)."`
	Window              int     `help:"Traces that a reader looks back at; a quarter of them, at most ten, form the baseline."`
	Mode                string  `help:"Source of the baselines: sessions (the traces until ten of the agent's sessions are complete), first (its first traces), rolling (its latest traces, updated after every window) or pinned (set with plumbline drift pin)."`
	Pins                string  `type:"path" help:"File of pinned baselines, for mode pinned. plumbline drift pin writes it."`
	Methodology         string  `help:"Reason for a threshold that is not the published one. Every point and alert contains this text."`

	Comparison `embed:""`
}

// Comparison says which traces form a baseline in modes sessions and pinned, and how often the measures
// of AAP section 8.5 may be wrong. Every point and alert states these values (aap/drift.Methodology).
type Comparison struct {
	Sessions    int     `json:"sessions" help:"Number of complete sessions that a baseline needs, in modes sessions and pinned."`
	LeastTraces int     `json:"least_traces" help:"Minimum number of traces of a baseline."`
	MostTraces  int     `json:"most_traces" help:"Number of traces that form a baseline in any case, complete sessions or not. A series that is learned takes memory for so many."`
	FalseAlarms float64 `json:"false_alarms" help:"Rate of false alarms for each trace that the tests of all measures together are set to. docs/DRIFT.md has the rate that was measured."`
}

// DefaultComparison returns the values that docs/DRIFT.md has figures of.
func DefaultComparison() Comparison {
	p := aapdrift.DefaultParams()
	return Comparison{Sessions: p.Sessions, LeastTraces: p.LeastTraces, MostTraces: p.MostTraces, FalseAlarms: p.FalseAlarms}
}

// mostWaiting limits the traces of a partition that wait, and with them memory.
const mostWaiting = 50_000

// LeastResidentBytes is the least value of resident_bytes.
const LeastResidentBytes = 1 << 20

// Default returns the configuration of a drift stage that serves its operator's interface on this
// stage's port.
func Default() Config {
	common := config.DefaultCommon("127.0.0.1:8083")
	common.Nice = config.BackgroundNice
	return Config{
		Common:     common,
		ClickHouse: config.DefaultClickHouse(),
		Cards:      config.DefaultCards(),
		Rules:      DefaultRules(),
		BatchRows:  10_000,
		BatchAge:   500 * time.Millisecond,

		CheckpointAge: 5 * time.Second,

		ResidentBytes: 768 << 20,

		TakeoverAfter: 8 * time.Second,
	}
}

// DefaultRules returns the published thresholds, baselines of whole sessions, and a lateness of two
// seconds.
func DefaultRules() Rules {
	published := aapdrift.DefaultParams()
	return Rules{
		Lateness:            2 * time.Second,
		WaitingTraces:       mostWaiting,
		WaitingBytes:        64 << 20,
		SimilarityThreshold: published.SimilarityThreshold,
		Sustained:           published.Sustained,
		Window:              published.Window,
		Mode:                string(published.Mode),
		Comparison:          DefaultComparison(),
	}
}

func (c *Config) Validate() []config.Fault {
	faults := append(config.Faults(c.Common.Validate()), c.ClickHouse.Validate()...)
	faults = append(faults, c.Cards.Validate()...)
	faults = append(faults, c.Rules.Validate()...)
	faults.Check(c.BatchRows > 0 && c.BatchRows <= mostWaiting, "batch_rows", "%d: want 1 to %d", c.BatchRows, mostWaiting)
	faults.Check(c.BatchAge > 0, "batch_age", "%s: want more than 0", c.BatchAge)
	faults.Check(c.CheckpointAge > 0, "checkpoint_age", "%s: want more than 0", c.CheckpointAge)
	faults.Check(c.TakeoverAfter >= time.Second, "takeover_after", "%s: want at least 1s", c.TakeoverAfter)
	faults.Check(c.ResidentBytes >= LeastResidentBytes, "resident_bytes", "%d: want at least %d", c.ResidentBytes, LeastResidentBytes)
	return faults
}

// FileFaults returns the faults of the files that the configuration names.
func (c *Config) FileFaults() []config.Fault {
	faults := config.Faults(c.Common.FileFaults())
	if c.Pins != "" {
		_, err := ReadPins(c.Pins)
		faults.Check(err == nil, "pins", "%v", err)
	}
	return faults
}

func (r *Rules) Validate() (faults config.Faults) {
	faults.Check(r.Lateness >= 0, "lateness", "%s: want at least 0", r.Lateness)
	faults.Check(r.WaitingTraces > 0 && r.WaitingTraces <= mostWaiting, "waiting_traces", "%d: want 1 to %d", r.WaitingTraces, mostWaiting)
	faults.Check(r.WaitingBytes > 0, "waiting_bytes", "%d: want at least 1", r.WaitingBytes)
	if joined, ok := r.params().Validate().(interface{ Unwrap() []error }); ok { // errors of the form "key: message"
		for _, err := range joined.Unwrap() {
			key, message, _ := strings.Cut(err.Error(), ": ")
			faults = append(faults, config.Fault{Key: key, Message: message})
		}
	}
	pinned := r.params().Mode == aapdrift.ModePinned
	faults.Check(!pinned || r.Pins != "", "pins", "is empty: mode %s takes its baselines from a file, which plumbline drift pin makes", r.Mode)
	faults.Check(pinned || r.Pins == "", "pins", "%s: only mode %s reads it", r.Pins, aapdrift.ModePinned)
	faults.Check(r.publishedThresholds() || r.Methodology != "", "methodology", "is empty: it must give the reason for a threshold that is not the published one (AAP section 8.3)")
	return faults
}

// publishedThresholds reports whether the thresholds are those of AAP section 8.3. It ignores the mode
// and the comparison, which each point and alert states.
func (r *Rules) publishedThresholds() bool {
	published := aapdrift.PublishedParams()
	return r.SimilarityThreshold == published.SimilarityThreshold && r.Sustained == published.Sustained && r.Window == published.Window
}

// methodology returns how drift is measured (aap/drift.Methodology).
func (r *Rules) methodology() string { return r.explained(aapdrift.Methodology(r.params())) }

// explained returns a text of aap/drift.Methodology after the reason why the parameters are not the usual
// ones, where they are not.
func (r *Rules) explained(text string) string {
	if r.publishedThresholds() && r.Comparison == DefaultComparison() {
		return text
	}
	return strings.TrimSpace(r.Methodology + " " + text)
}

func (r *Rules) params() aapdrift.Params {
	p := aapdrift.PublishedParams()
	p.SimilarityThreshold, p.Sustained, p.Window, p.Mode = r.SimilarityThreshold, r.Sustained, r.Window, aapdrift.Mode(r.Mode)
	p.Sessions, p.LeastTraces, p.MostTraces, p.FalseAlarms = r.Sessions, r.LeastTraces, r.MostTraces, r.FalseAlarms
	return p
}
