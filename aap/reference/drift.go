package reference

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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

// chronological sorts by time in milliseconds; equal times and what is no time keep their order.
func chronological(list value) []value {
	traces := list.each()
	if len(traces) < 2 {
		return traces
	}
	at := make(map[string]float64, len(traces))
	for _, trace := range traces {
		at[trace.path] = trace.get("timestamp").milliseconds()
	}
	slices.SortStableFunc(traces, func(a, b value) int {
		x, y := at[a.path], at[b.path]
		if math.IsNaN(x) || math.IsNaN(y) {
			return 0
		}
		return cmp.Compare(x, y)
	})
	return traces
}

// baselineSize returns N for a list of n traces.
func baselineSize(n int, sustained float64) float64 {
	return math.Max(sustained, math.Min(10, math.Floor(float64(n)/4)))
}

// baselineOf returns the centroid of traces.
func baselineOf(traces []value) similarity.Vector {
	var sum similarity.Vector
	for _, trace := range traces {
		sum = similarity.Add(sum, traceFeatures(trace))
	}
	return similarity.Centroid(sum, len(traces))
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
		ids = append(ids, low.trace.get("trace_id").orValue(""))
	}
	d.alerts = append(d.alerts, DriftAlert{
		AlertType:          "drift_detected",
		AgentID:            last.trace.get("agent_id").orValue(""),
		CardID:             d.card.get("card_id").orValue(""),
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

func (d *detector) direction() string {
	declared := setOf(valueIDs(d.card.get("values").get("declared")))
	if early, late, ok := d.rates(); ok && early > 0.1 && late < early*0.5 {
		return "autonomy_expansion"
	}
	if d.uses.undeclaredShare(declared) > 0.3 {
		return "value_drift"
	}
	if declared["principal_benefit"] && d.meanConfidence() < 0.5 {
		return "principal_misalignment"
	}
	return "unknown"
}

// rates returns the escalation rates of the first and last three traces so far.
func (d *detector) rates() (early, late float64, ok bool) {
	n := len(d.escalated)
	if n < 6 {
		return 0, 0, false
	}
	return mean(d.escalated[:3]), mean(d.escalated[n-3:]), true
}

// meanConfidence is the mean over the streak's last three traces; none counts as 1.
func (d *detector) meanConfidence() float64 {
	var recent []float64
	for _, low := range d.streak[max(0, len(d.streak)-3):] {
		confidence := low.trace.get("decision").get("confidence")
		recent = append(recent, confidence.or(value{v: 1.0}).number())
	}
	return mean(recent)
}

func (d *detector) indicators() []Indicator {
	found := []Indicator{}
	if early, late, ok := d.rates(); ok && math.Abs(early-late) > 0.05 {
		found = append(found, Indicator{
			Indicator: "escalation_rate_change", Baseline: round2(early), Current: round2(late),
			Description: fmt.Sprintf("Escalation rate changed from %s%% to %s%%", toFixed(early*100, 0), toFixed(late*100, 0)),
		})
	}
	if n := len(d.streak); n >= 3 {
		first, last := d.streak[0].similarity, d.streak[n-1].similarity
		course := "stable"
		if last-first < 0 {
			course = "decreasing"
		}
		found = append(found, Indicator{
			Indicator: "similarity_trend", Baseline: similarity.Round4(first), Current: similarity.Round4(last),
			Description: fmt.Sprintf("Similarity %s over %d traces", course, n),
		})
	}
	return found
}

// usage counts uses of values as the SDK does, in a JavaScript object: a value
// named like something that objects inherit spoils the sum for good.
type usage struct {
	counts  map[string]int
	spoiled bool
}

func (u *usage) add(ids []string) {
	if u.counts == nil {
		u.counts = map[string]int{}
	}
	for _, id := range ids {
		switch {
		case id == "__proto__": // assigned in vain
		case inherited[id]:
			u.spoiled = true
		default:
			u.counts[id]++
		}
	}
}

// undeclaredShare returns the undeclared share of all uses, 0 when it cannot be told.
func (u *usage) undeclaredShare(declared map[string]bool) float64 {
	all, undeclared := 0, 0
	for id, n := range u.counts {
		all += n
		if !declared[id] {
			undeclared += n
		}
	}
	if u.spoiled || all == 0 {
		return 0
	}
	return float64(undeclared) / float64(all)
}

// TraceCourse is the course of similarities to the baseline over a list.
type TraceCourse struct {
	Baseline     int       `json:"baseline"` // number of traces that form it
	Order        []any     `json:"order"`    // trace ids in order of time
	Similarities []float64 `json:"similarities"`
}

// TraceSimilarities returns every later trace's similarity to the baseline.
func TraceSimilarities(traces any, p DriftParams) (c TraceCourse, err error) {
	defer catch(&err)
	ordered := chronological(value{traces, "traces"})
	n := min(len(ordered), int(math.Max(0, baselineSize(len(ordered), p.sustained()))))
	c = TraceCourse{Baseline: n, Order: []any{}, Similarities: []float64{}}
	baseline := baselineOf(ordered[:n])
	for i, trace := range ordered {
		c.Order = append(c.Order, trace.get("trace_id").orValue(""))
		if i >= n {
			c.Similarities = append(c.Similarities, similarity.Cosine(traceFeatures(trace), baseline))
		}
	}
	return c, nil
}

// mean sums in order, then divides.
func mean(numbers []float64) float64 {
	var sum float64
	for _, n := range numbers {
		sum += n
	}
	return sum / float64(len(numbers))
}

func round2(x float64) float64 { return math.Floor(x*100+0.5) / 100 }
