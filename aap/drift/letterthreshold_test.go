package drift

import (
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// exact returns a series whose similarities are exact in floating point: a baseline of {a: 1},
// and traces of length 10 whose feature a has weight 3 or a little less.
func exact(weights ...float64) []Sample {
	samples := make([]Sample, 0, 10+len(weights))
	add := func(features similarity.Vector) {
		i := len(samples)
		samples = append(samples, Sample{
			AgentID: "agent-d", CardID: "ac-d", TraceID: goodTrace(i).TraceID, Digest: schema.DigestOf([]byte{byte(i)}),
			EventTime: epoch.Add(time.Duration(i) * time.Minute), Features: features,
		})
	}
	for range 10 {
		add(similarity.Vector{{Key: "a", Weight: 1}})
	}
	for _, a := range weights {
		add(similarity.Vector{{Key: "a", Weight: a}, {Key: "b", Weight: 1}, {Key: "c", Weight: 3}, {Key: "d", Weight: 9}})
	}
	return samples
}

// A trace exactly at DEFAULT_SIMILARITY_THRESHOLD is not low: an alert is raised when the
// similarity is below it (AAP section 8.3).
func TestSimilarityAtTheThreshold(t *testing.T) {
	points, alerts := run(exact(3, 3, 3, 3), PublishedParams())
	for _, point := range points[10:] {
		if point.Similarity != DefaultSimilarityThreshold || point.Status != StatusNormal || point.Streak != 0 {
			t.Errorf("a trace at the threshold: %+v", point)
		}
	}
	if len(alerts) != 0 {
		t.Errorf("alerts %v at the threshold", alerts)
	}
	const less = 2.9999999
	points, alerts = run(exact(less, less, 3, less, less, less), PublishedParams())
	var streaks []int
	for _, point := range points[10:] {
		streaks = append(streaks, point.Streak)
	}
	if want := []int{1, 2, 0, 1, 2, 3}; !slices.Equal(streaks, want) {
		t.Errorf("streaks %v, want %v: a trace at the threshold ends a streak", streaks, want)
	}
	if len(alerts) != 1 || alerts[0].TraceIDs[0] != "d013" {
		t.Errorf("alerts %+v", alerts)
	}
}

// DEFAULT_SUSTAINED_TURNS_THRESHOLD consecutive low traces raise an alert; one less raises
// none.
func TestStreakAtTheThreshold(t *testing.T) {
	for low, want := range map[int]int{DefaultSustained - 1: 0, DefaultSustained: 1, DefaultSustained + 1: 1} {
		weights := make([]float64, low)
		if _, alerts := run(exact(weights...), PublishedParams()); len(alerts) != want {
			t.Errorf("%d low traces: %d alerts, want %d", low, len(alerts), want)
		}
	}
}
