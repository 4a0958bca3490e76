package reference

import (
	"slices"
	"sort"
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
		insertAfter(all, firstRun(all))
	} else {
		slices.SortStableFunc(all, compareTimes)
	}
	for i := range all {
		traces[i] = all[i].trace
	}
	return traces
}

// firstRun returns the length of the ordered run at the start of all. It first reverses a
// strictly descending run.
func firstRun(all []dated) int {
	falling := compareTimes(all[1], all[0]) < 0
	length := 2
	for length < len(all) && (compareTimes(all[length], all[length-1]) < 0) == falling {
		length++
	}
	if falling {
		slices.Reverse(all[:length])
	}
	return length
}

// insertAfter inserts each further element into the sorted part by binary search.
func insertAfter(all []dated, sorted int) {
	for ; sorted < len(all); sorted++ {
		pivot := all[sorted]
		place := sort.Search(sorted, func(i int) bool { return compareTimes(pivot, all[i]) < 0 })
		copy(all[place+1:sorted+1], all[place:sorted])
		all[place] = pivot
	}
}
