package reference

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/aap/similarity"
)

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
	return mean(d.escalated[:3]), mean(d.escalated[n-3:]), true
}

// meanConfidence returns the mean over the streak's last three traces; an absent confidence
// counts as 1.
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

// mean sums in order and then divides.
func mean(numbers []float64) float64 {
	var sum float64
	for _, n := range numbers {
		sum += n
	}
	return sum / float64(len(numbers))
}

func round2(x float64) float64 { return math.Floor(x*100+0.5) / 100 }
