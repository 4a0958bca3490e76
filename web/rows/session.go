package rows

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// The queries of a session's page. Agent and session are filters of each, and the caller has checked that the
// reader may see the agent.
var (
	querySessionExtent = query("session_extent")
	querySessionRecord = query("session_record")
	querySessionParts  = query("session_parts")
	querySessionTraces = query("session_traces")
	querySessionPlace  = query("session_place")
	queryVerdictsOf    = query("verdicts_of")
)

// Extent is how far the stored traces of a session reach.
type Extent struct {
	Traces    uint64    `ch:"traces"`
	FirstHour uint32    `ch:"first_hour"`
	LastHour  uint32    `ch:"last_hour"`
	First     time.Time `ch:"first_event"`
	Last      time.Time `ch:"last_event"`
	Ended     bool      `ch:"ended"` // a trace declares the end
	Cents     int64     `ch:"cents"`
	Later     uint64    `ch:"later"` // traces that arrived after those of the sealed parts
}

// Extent returns the extent of a session; the zero extent if no trace of it is stored.
func (r *Reader) Extent(ctx context.Context, agent, session string) (Extent, error) {
	extent, _, err := first[Extent](ctx, r, "the extent of a session", querySessionExtent, argument("agent", agent), argument("session", session))
	return extent, err
}

// Record is what the exporter recorded about a session.
type Record struct {
	Status  string    `ch:"status"` // sealed, held or open
	Reason  string    `ch:"reason"`
	Updated time.Time `ch:"updated_at"`
}

// Record returns the record of a session; found is false if the exporter has not sealed or held it.
func (r *Reader) Record(ctx context.Context, agent, session string) (record Record, found bool, err error) {
	return first[Record](ctx, r, "the record of a session", querySessionRecord, argument("agent", agent), argument("session", session))
}

// Part is a sealed part of a session: its bundle, and the verdict on it.
type Part struct {
	Part       uint32    `ch:"part"`
	LastPart   bool      `ch:"last_part"`
	SHA256     string    `ch:"sha256"` // hexadecimal
	Path       string    `ch:"path"`   // within the bundle directory
	Bytes      uint64    `ch:"bytes"`
	Rows       uint64    `ch:"rows"`
	Traces     uint64    `ch:"traces"`
	Redactions uint64    `ch:"redactions"`
	ChainHash  string    `ch:"chain_hash"`
	Previous   string    `ch:"previous_sha256"` // empty in the first part
	KeyID      string    `ch:"key_id"`
	Reason     string    `ch:"reason"`
	SealedAt   time.Time `ch:"exported_at"`
	AllParts   uint64    `ch:"all_parts"`  // of the session, the same in each row
	AllTraces  uint64    `ch:"all_traces"` // in its bundles

	Recommended    string   `ch:"recommended_action"` // empty: there is no verdict
	Verified       bool     `ch:"verified"`
	VerifiedTraces uint64   `ch:"verified_traces"`
	UnknownCards   uint64   `ch:"unknown_cards"`
	Types          []string `ch:"types"`
	Severities     []string `ch:"severities"`
	Descriptions   []string `ch:"descriptions"`
	OfTraces       []string `ch:"of_traces"`
	AllFindings    uint64   `ch:"all_findings"` // of which the lists have the first 30
	Unchecked      []string `ch:"not_checked"`  // checks that a limit prevented, in words
}

// Parts returns the sealed parts of a session, the newest first, at most limit.
func (r *Reader) Parts(ctx context.Context, agent, session string, limit int) ([]Part, error) {
	return read[Part](ctx, r, "the parts of a session", querySessionParts, argument("agent", agent), argument("session", session), argument("limit", limit))
}

// Place is where a page of a session's traces begins: after the trace with this time and digest.
type Place struct {
	At     int64  `ch:"at"` // Unix nanoseconds
	Digest string `ch:"trace_digest"`
}

// Decision is one trace as a person reads it. Long texts are cut.
type Decision struct {
	At           time.Time  `ch:"event_time"` // by the agent's clock
	Received     time.Time  `ch:"received_at"`
	Sequence     uint64     `ch:"stream_sequence"`
	TraceID      string     `ch:"trace_id"`
	Digest       string     `ch:"trace_digest"` // hexadecimal
	CardID       string     `ch:"card_id"`
	ActionType   string     `ch:"action_type"`
	ActionName   string     `ch:"action_name"`
	Category     string     `ch:"action_category"`
	Target       string     `ch:"target"`
	Parameters   string     `ch:"parameters_text"`
	Chosen       uint64     `ch:"chosen"`      // place of the selected option, from 1; also one that is not among the first 30
	Values       []string   `ch:"some_values"` // the first 30, as of each list here
	AllValues    uint64     `ch:"all_values"`
	Confidence   *float64   `ch:"confidence"`
	Reasoning    string     `ch:"reasoning"`
	Options      []string   `ch:"options"`
	Descriptions []string   `ch:"descriptions"`
	Scores       []*float64 `ch:"scores"`
	Flags        []string   `ch:"flags"`
	AllOptions   uint64     `ch:"all_options"`
	HasEscalated bool       `ch:"has_escalation"`
	Required     bool       `ch:"escalation_required"`
	Status       string     `ch:"escalation_status"`
	WhyEscalated string     `ch:"why_escalated"`
	Response     string     `ch:"response"`
	Triggers     []string   `ch:"trigger_texts"`
	Matched      []bool     `ch:"matched"`
	AllTriggers  uint64     `ch:"all_triggers"`
	HasExecution bool       `ch:"has_execution"`
	Tool         string     `ch:"tool_name"`
	Cents        int64      `ch:"cents"`
	Fault        string     `ch:"fault"`
	Bytes        uint64     `ch:"bytes"`
}

// Decisions returns the traces of a session after a place, in the order of their own time, at most limit.
func (r *Reader) Decisions(ctx context.Context, agent, session string, extent Extent, after Place, limit int) ([]Decision, error) {
	return read[Decision](ctx, r, "the traces of a session", querySessionTraces, argument("agent", agent), argument("session", session),
		argument("from", extent.FirstHour), argument("to", extent.LastHour), argument("after_time", after.At), argument("after_digest", after.Digest), argument("limit", limit))
}

// PlaceOf returns the place of the first trace with an id in a session.
func (r *Reader) PlaceOf(ctx context.Context, agent, session, trace string) (place Place, found bool, err error) {
	return first[Place](ctx, r, "the place of a trace", querySessionPlace, argument("agent", agent), argument("session", session), argument("trace", trace))
}

// Verdict is the current verdict on a trace.
type Verdict struct {
	Digest                string    `ch:"judged_digest"` // of the trace, hexadecimal
	Status                string    `ch:"status"`        // judged or card_unknown
	Verified              bool      `ch:"verified"`
	Recommended           string    `ch:"recommended_action"`
	Similarity            float64   `ch:"similarity_score"`
	Engine                string    `ch:"engine_version"`
	Profile               string    `ch:"profile"`
	At                    time.Time `ch:"verified_at"`
	ViolationTypes        []string  `ch:"violation_types"`
	ViolationSeverities   []string  `ch:"violation_severities"`
	ViolationDescriptions []string  `ch:"violation_descriptions"`
	ViolationFields       []string  `ch:"violation_fields"`
	FindingTypes          []string  `ch:"finding_types"`
	FindingSeverities     []string  `ch:"finding_severities"`
	FindingDescriptions   []string  `ch:"finding_descriptions"`
	FindingFields         []string  `ch:"finding_fields"`
	WarningTypes          []string  `ch:"warning_types"`
	WarningDescriptions   []string  `ch:"warning_descriptions"`
	AllProblems           uint64    `ch:"all_problems"` // violations and findings; of each list there are at most 30
	AllWarnings           uint64    `ch:"all_warnings"`
}

// VerdictsOf returns the current verdicts on an agent's traces, by digest. The event times of the traces lie
// within the extent.
func (r *Reader) VerdictsOf(ctx context.Context, agent string, extent Extent, digests []string) (map[string]*Verdict, error) {
	all, err := read[Verdict](ctx, r, "the verdicts on traces", queryVerdictsOf, argument("agent", agent),
		argument("from", extent.FirstHour), argument("to", extent.LastHour), argument("digests", digests))
	of := make(map[string]*Verdict, len(all))
	for i := range all {
		of[all[i].Digest] = &all[i]
	}
	return of, err
}

var queryBundle = query("bundle")

// Bundle is a sealed bundle.
type Bundle struct {
	AgentID   string `ch:"agent_id"`
	SessionID string `ch:"session_id"`
	Part      uint32 `ch:"part"`
	SHA256    string `ch:"bundle_sha256"` // hexadecimal
	Path      string `ch:"path"`          // within the bundle directory
	Bytes     uint64 `ch:"bytes"`
	Previous  string `ch:"previous_sha256"` // SHA-256 of the agent's bundle before; empty in the first
}

// Bundle returns the bundle with a SHA-256, in hexadecimal digits, if it belongs to one of the agents.
func (r *Reader) Bundle(ctx context.Context, agents store.Agents, sha256 string) (bundle Bundle, found bool, err error) {
	return first[Bundle](ctx, r, "a bundle", queryBundle, append(within(agents), argument("sha256", sha256))...)
}
