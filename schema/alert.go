package schema

import "time"

// Direction is the category of a drift (AAP section 8.5).
type Direction string

// The four categories of AAP section 8.5, and unknown.
const (
	AutonomyExpansion     Direction = "autonomy_expansion"
	ValueDrift            Direction = "value_drift"
	PrincipalMisalignment Direction = "principal_misalignment"
	CommunicationDrift    Direction = "communication_drift"
	UnknownDirection      Direction = "unknown"
)

// DriftAlert is a drift alert (AAP section 8.4). AlertID is stable over replays: it is the
// SHA-256 of agent, card, the streak's digests, engine version and parameters.
type DriftAlert struct {
	AlertID            Digest        `json:"alert_id"`
	AlertType          string        `json:"alert_type"` // "drift_detected"
	AgentID            string        `json:"agent_id"`
	CardID             string        `json:"card_id"`
	DetectionTimestamp time.Time     `json:"detection_timestamp"` // event time of the streak's last trace
	Analysis           DriftAnalysis `json:"analysis"`
	Recommendation     string        `json:"recommendation"`
	TraceIDs           []string      `json:"trace_ids"`
	EngineVersion      string        `json:"engine_version"`
	Mode               string        `json:"mode"`                  // source of the baselines: first, rolling or pinned
	BaselineID         Digest        `json:"baseline_id"`           // the baseline that the streak was compared with
	Methodology        string        `json:"methodology,omitempty"` // why the thresholds differ from those of AAP section 8.3
}

// DriftAnalysis is the analysis block of AAP section 8.4.
type DriftAnalysis struct {
	SimilarityScore    float64     `json:"similarity_score"` // similarity of the streak's last trace, four decimals
	SustainedTraces    int         `json:"sustained_traces"`
	Threshold          float64     `json:"threshold"`
	DriftDirection     Direction   `json:"drift_direction"`
	SpecificIndicators []Indicator `json:"specific_indicators"`
}

// Indicator is one measured sign of drift (AAP section 8.4).
type Indicator struct {
	Indicator   string  `json:"indicator"`
	Baseline    float64 `json:"baseline"`
	Current     float64 `json:"current"`
	Description string  `json:"description"`
}
