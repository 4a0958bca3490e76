package reference

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
)

// shortList is the length below which the reference's engine uses insertion sort.
const shortList = 64

// dated is a trace with its time in milliseconds, NaN for an invalid time.
type dated struct {
	trace value
	at    float64
}

// compareTimes is the SDK's comparison: an invalid time equals every time.
func compareTimes(a, b dated) int {
	switch {
	case a.at < b.at:
		return -1
	case a.at > b.at:
		return 1
	}
	return 0
}

// chronological sorts a list of traces by time; equal times stay in the given order. If some
// traces have no valid time, the result depends on the sequence of comparisons. So a short list
// is sorted step by step as the reference's engine sorts it.
func chronological(list value) []value {
	traces := list.each()
	if len(traces) < 2 {
		return traces
	}
	all := make([]dated, len(traces))
	for i, trace := range traces {
		all[i] = dated{trace, trace.get("timestamp").milliseconds()}
	}
	if len(all) < shortList {
		sortShort(all)
	} else {
		slices.SortStableFunc(all, compareTimes)
	}
	for i := range all {
		traces[i] = all[i].trace
	}
	return traces
}

// sortShort finds the ordered run at the start of all, which it reverses if it is strictly
// descending, and inserts each further element into the sorted part by binary search.
func sortShort(all []dated) {
	falling := compareTimes(all[1], all[0]) < 0
	sorted := 2
	for sorted < len(all) && (compareTimes(all[sorted], all[sorted-1]) < 0) == falling {
		sorted++
	}
	if falling {
		slices.Reverse(all[:sorted])
	}
	for ; sorted < len(all); sorted++ {
		pivot := all[sorted]
		place := sort.Search(sorted, func(i int) bool { return compareTimes(pivot, all[i]) < 0 })
		copy(all[place+1:sorted+1], all[place:sorted])
		all[place] = pivot
	}
}

// TraceCourse holds the similarities of a list of traces to its baseline.
type TraceCourse struct {
	Baseline     Number   `json:"baseline"` // N: the number of traces that form it, if there are enough
	Order        []Echo   `json:"order"`    // trace ids in order of time
	Similarities []Number `json:"similarities"`
}

// TraceSimilarities returns the similarity of every trace after the baseline to the baseline.
func TraceSimilarities(traces any, p DriftParams) (c TraceCourse, err error) {
	defer catch(&err)
	ordered := chronological(value{traces, "traces"})
	size := baselineSize(len(ordered), p.sustained())
	n := min(len(ordered), windowOf(size))
	c = TraceCourse{Baseline: Number(size), Order: []Echo{}, Similarities: []Number{}}
	baseline := baselineOf(ordered[:n])
	for i, trace := range ordered {
		c.Order = append(c.Order, trace.get("trace_id").echoOrEmpty())
		if i >= n {
			c.Similarities = append(c.Similarities, Number(cosine(traceFeatures(trace), baseline)))
		}
	}
	return c, nil
}

// baselineSize returns N for a list of n traces; it may not be a whole number.
func baselineSize(n int, sustained value) float64 {
	return math.Max(sustained.number(), math.Min(10, math.Floor(float64(n)/4)))
}

// windowOf returns the number of traces that a baseline of that size uses.
func windowOf(size float64) int {
	if math.IsNaN(size) {
		return 0
	}
	return int(math.Min(size, math.MaxInt32))
}

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

func (p DriftParams) sustained() value {
	return value{p.SustainedThreshold, "sustained_threshold"}.orDefault(3)
}

func (n value) orDefault(absent float64) value {
	if n.undefined() {
		n.v = absent
	}
	return n
}

// Drift detects drift in a list of traces against the card's declarations.
func Drift(card, traces any, p DriftParams, now time.Time) (alerts []DriftAlert, err error) {
	defer catch(&err)
	d := &detector{
		card:      value{card, "card"},
		traces:    chronological(value{traces, "traces"}),
		threshold: value{p.SimilarityThreshold, "similarity_threshold"}.orDefault(0.30),
		sustained: p.sustained(),
		now:       now,
		alerts:    []DriftAlert{},
	}
	size := baselineSize(len(d.traces), d.sustained)
	if float64(len(d.traces)) < (value{v: size}).plus(d.sustained).number() {
		return d.alerts, nil
	}
	n := min(len(d.traces), windowOf(size))
	baseline := baselineOf(d.traces[:n])
	for _, trace := range d.traces[:n] {
		d.count(trace)
	}
	if !(size < float64(len(d.traces))) {
		return d.alerts, nil
	}
	if size != math.Trunc(size) {
		d.sustained.throw("a baseline of %s traces", formatNumber(size))
	}
	for _, trace := range d.traces[n:] {
		d.count(trace)
		if score := cosine(traceFeatures(trace), baseline); score < d.threshold.number() {
			d.streak = append(d.streak, lowTrace{trace, score})
		} else {
			d.streak = nil
		}
		if float64(len(d.streak)) == d.sustained.v { // exactly: a longer streak raises no other alert
			d.alert()
		}
	}
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

// rates returns the escalation rates of the first three and the last three traces so far.
func (d *detector) rates() (early, late float64, ok bool) {
	n := len(d.escalated)
	if n < 6 {
		return 0, 0, false
	}
	return similarity.Mean(d.escalated[:3]), similarity.Mean(d.escalated[n-3:]), true
}

// meanConfidence returns the mean over the streak's last three traces; an absent confidence
// counts as 1.
func (d *detector) meanConfidence() float64 {
	var recent []float64
	for _, low := range d.streak[max(0, len(d.streak)-3):] {
		confidence := low.trace.get("decision").get("confidence")
		recent = append(recent, confidence.or(value{v: 1.0}).number())
	}
	return similarity.Mean(recent)
}

func (d *detector) indicators() []Indicator {
	found := []Indicator{}
	if early, late, ok := d.rates(); ok && math.Abs(early-late) > 0.05 {
		found = append(found, Indicator{
			Indicator: "escalation_rate_change", Baseline: Number(round2(early)), Current: Number(round2(late)),
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
			Indicator: "similarity_trend", Baseline: Number(similarity.Round4(first)), Current: Number(similarity.Round4(last)),
			Description: fmt.Sprintf("Similarity %s over %d traces", course, n),
		})
	}
	return found
}

// usage counts uses of values as the SDK does, in a JavaScript object. A value with the name of
// an inherited member makes the sum invalid permanently.
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
		case id == "__proto__": // the assignment has no effect
		case ofObjects[id]:
			u.spoiled = true
		default:
			u.counts[id]++
		}
	}
}

// undeclaredShare returns the undeclared share of all uses, 0 where it is unknown.
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

func round2(x float64) float64 { return math.Floor(x*100+0.5) / 100 }
