package reference

import (
	"math"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
)

// DriftAlert is the SDK's drift alert.
type DriftAlert struct {
	AlertType          string        `json:"alert_type"`
	AgentID            any           `json:"agent_id"` // of the streak's last trace
	CardID             any           `json:"card_id"`
	DetectionTimestamp string        `json:"detection_timestamp"`
	Analysis           DriftAnalysis `json:"analysis"`
	Recommendation     string        `json:"recommendation"`
	TraceIDs           []any         `json:"trace_ids"`
}

// DriftAnalysis is the analysis block of an alert.
type DriftAnalysis struct {
	SimilarityScore    float64     `json:"similarity_score"`
	SustainedTraces    int         `json:"sustained_traces"`
	Threshold          float64     `json:"threshold"`
	DriftDirection     string      `json:"drift_direction"`
	SpecificIndicators []Indicator `json:"specific_indicators"`
}

// Indicator is one measured sign of drift.
type Indicator struct {
	Indicator   string  `json:"indicator"`
	Baseline    float64 `json:"baseline"`
	Current     float64 `json:"current"`
	Description string  `json:"description"`
}

// DriftParams are the two optional arguments of drift detection, as they stand
// in a request; Undefined takes the default.
type DriftParams struct {
	SimilarityThreshold any
	SustainedThreshold  any
}

// threshold and sustained return the arguments as numbers.
func (p DriftParams) threshold() float64 {
	return numberOr(value{p.SimilarityThreshold, "similarity_threshold"}, 0.30)
}

func (p DriftParams) sustained() float64 {
	return numberOr(value{p.SustainedThreshold, "sustained_threshold"}, 3)
}

func numberOr(n value, absent float64) float64 {
	if n.undefined() {
		return absent
	}
	f, ok := n.v.(float64)
	if !ok {
		n.throw("%s is not a number", n.kind())
	}
	return f
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

// detector holds one detection while it goes on.
type detector struct {
	card                 value
	traces               []value
	threshold, sustained float64
	now                  time.Time

	escalated []float64 // 1 or 0 a trace
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
	if float64(len(d.traces)) < size+d.sustained {
		return
	}
	if size != math.Trunc(size) {
		d.card.throw("a baseline of %s traces", formatNumber(size))
	}
	n := int(size)
	baseline := baselineOf(d.traces[:n])
	for _, trace := range d.traces[:n] {
		d.count(trace)
	}
	for _, trace := range d.traces[n:] {
		score := similarity.Cosine(traceFeatures(trace), baseline)
		d.count(trace)
		if score < d.threshold {
			d.streak = append(d.streak, lowTrace{trace, score})
		} else {
			d.streak = nil
		}
		if float64(len(d.streak)) == d.sustained {
			d.alert()
		}
	}
}

// count keeps what directions are inferred from.
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
		d.card.throw("sustained_threshold 0 asks for an alert without a trace")
	}
	last := d.streak[len(d.streak)-1]
	ids := []any{}
	for _, low := range d.streak {
		ids = append(ids, low.trace.get("trace_id").orEmpty())
	}
	d.alerts = append(d.alerts, DriftAlert{
		AlertType:          "drift_detected",
		AgentID:            last.trace.get("agent_id").orEmpty(),
		CardID:             d.card.get("card_id").orEmpty(),
		DetectionTimestamp: d.now.UTC().Format(isoLayout),
		Analysis: DriftAnalysis{
			SimilarityScore:    similarity.Round4(last.similarity),
			SustainedTraces:    len(d.streak),
			Threshold:          d.threshold,
			DriftDirection:     d.direction(),
			SpecificIndicators: d.indicators(),
		},
		Recommendation: "Review recent decisions for alignment drift",
		TraceIDs:       ids,
	})
}
