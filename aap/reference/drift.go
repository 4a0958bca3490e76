package reference

import (
	"math"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
)

// DriftAlert is the SDK's drift alert.
type DriftAlert struct {
	AlertType          string        `json:"alert_type"`
	AgentID            Echo          `json:"agent_id"` // of the streak's last trace
	CardID             Echo          `json:"card_id"`
	DetectionTimestamp string        `json:"detection_timestamp"`
	Analysis           DriftAnalysis `json:"analysis"`
	Recommendation     string        `json:"recommendation"`
	TraceIDs           []Echo        `json:"trace_ids"`
}

// DriftAnalysis is the analysis block of an alert.
type DriftAnalysis struct {
	SimilarityScore    Number      `json:"similarity_score"`
	SustainedTraces    int         `json:"sustained_traces"`
	Threshold          Echo        `json:"threshold"`
	DriftDirection     string      `json:"drift_direction"`
	SpecificIndicators []Indicator `json:"specific_indicators"`
}

// Indicator is one measured sign of drift.
type Indicator struct {
	Indicator   string `json:"indicator"`
	Baseline    Number `json:"baseline"`
	Current     Number `json:"current"`
	Description string `json:"description"`
}

// DriftParams are the two optional arguments of drift detection, as in the request; Undefined
// means the default.
type DriftParams struct {
	SimilarityThreshold any
	SustainedThreshold  any
}

// threshold and sustained return the arguments, or their defaults.
func (p DriftParams) threshold() value {
	return argument(p.SimilarityThreshold, 0.30, "similarity_threshold")
}

func (p DriftParams) sustained() value {
	return argument(p.SustainedThreshold, 3.0, "sustained_threshold")
}

func argument(given any, absent float64, path string) value {
	if _, undefined := given.(Undefined); undefined {
		given = absent
	}
	return value{given, path}
}

// Drift detects drift in a list of traces against the card's declarations.
func Drift(card, traces any, p DriftParams, now time.Time) (alerts []DriftAlert, err error) {
	defer catch(&err)
	d := &detector{
		card:      value{card, "card"},
		traces:    chronological(value{traces, "traces"}),
		threshold: p.threshold(),
		sustained: p.sustained(),
		now:       now,
		alerts:    []DriftAlert{},
	}
	d.run()
	return d.alerts, nil
}

// detector is the state of one detection.
type detector struct {
	card                 value
	traces               []value
	threshold, sustained value
	now                  time.Time

	escalated []float64 // 1 or 0 for each trace
	uses      usage
	streak    []lowTrace
	alerts    []DriftAlert
}

type lowTrace struct {
	trace      value
	similarity float64
}

func (d *detector) run() {
	size := baselineSize(len(d.traces), d.sustained)
	if float64(len(d.traces)) < (value{v: size}).plus(d.sustained).number() {
		return
	}
	n := min(len(d.traces), windowOf(size))
	baseline := baselineOf(d.traces[:n])
	for _, trace := range d.traces[:n] {
		d.count(trace)
	}
	if !(size < float64(len(d.traces))) {
		return
	}
	if size != math.Trunc(size) {
		d.sustained.throw("a baseline of %s traces", formatNumber(size))
	}
	for _, trace := range d.traces[n:] {
		d.step(trace, cosine(traceFeatures(trace), baseline))
	}
}

// step processes one trace after the baseline. It raises an alert when the streak reaches
// exactly the sustained length.
func (d *detector) step(trace value, score float64) {
	d.count(trace)
	if score < d.threshold.number() {
		d.streak = append(d.streak, lowTrace{trace, score})
	} else {
		d.streak = nil
	}
	if float64(len(d.streak)) == d.sustained.v {
		d.alert()
	}
}

// count records the inputs for the direction.
func (d *detector) count(trace value) {
	escalated := 0.0
	if trace.get("escalation").try("required").truthy() {
		escalated = 1
	}
	d.escalated = append(d.escalated, escalated)
	d.uses.add(valueIDs(trace.get("decision").get("values_applied")))
}

func (d *detector) alert() {
	if len(d.streak) == 0 {
		d.sustained.throw("0 asks for an alert without a trace")
	}
	last := d.streak[len(d.streak)-1]
	ids := []Echo{}
	for _, low := range d.streak {
		ids = append(ids, low.trace.get("trace_id").echoOrEmpty())
	}
	d.alerts = append(d.alerts, DriftAlert{
		AlertType:          "drift_detected",
		AgentID:            last.trace.get("agent_id").echoOrEmpty(),
		CardID:             d.card.get("card_id").echoOrEmpty(),
		DetectionTimestamp: d.now.UTC().Format(isoLayout),
		Analysis: DriftAnalysis{
			SimilarityScore:    Number(similarity.Round4(last.similarity)),
			SustainedTraces:    len(d.streak),
			Threshold:          Echo{d.threshold.v},
			DriftDirection:     d.direction(),
			SpecificIndicators: d.indicators(),
		},
		Recommendation: "Review recent decisions for alignment drift",
		TraceIDs:       ids,
	})
}
