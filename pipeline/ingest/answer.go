package ingest

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// status is the outcome of a line.
type status uint8

const (
	pending   status = iota // not committed yet
	accepted                // durable
	duplicate               // the same bytes were already durable
	refused                 // never accepted: see the faults
	forbidden               // the token has no right to the line's agent
	retry                   // not stored for a transient reason: send the line again
	statuses
)

// String returns the status as clients and metrics show it.
func (s status) String() string {
	return [...]string{"pending", "accepted", "duplicate", "refused", "forbidden", "retry"}[s]
}

// result is the outcome of one line; traceID aliases the line.
type result struct {
	line    int
	through int // the last line, if there are several; else 0
	traceID string
	status  status
	faults  []schema.Fault

	name     uint64           // of the trace, for member stored of the server
	warnings []schema.Warning // returned if the line is stored
}

// maxFaultBytes limits the faults and warnings in one answer. Without the limit, tiny broken
// lines could make an answer many times the size of the request.
const maxFaultBytes = 4 << 20

var (
	faultsLeftOff   = []schema.Fault{{Message: "has faults, but the answer is full: send this line in another request to see them"}}
	warningsLeftOff = []schema.Warning{{Code: schema.WarnLeftOff, Message: "has warnings, but the answer is full: send fewer lines in a request to see them"}}
)

// answer is the body of the answer to a publisher: one JSON object for each line.
type answer struct {
	text       []byte
	faultBytes int
	lines      int
	counts     [statuses]int
}

// add appends the outcome of a line.
func (a *answer) add(r *result) {
	a.counts[r.status]++
	a.lines++
	b := append(a.text, `{"line":`...)
	b = strconv.AppendInt(b, int64(r.line), 10)
	if r.through > 0 {
		b = append(b, `,"through":`...)
		b = strconv.AppendInt(b, int64(r.through), 10)
	}
	b = append(b, `,"trace_id":`...)
	b = appendText(b, r.traceID)
	b = append(b, `,"status":"`...)
	b = append(b, r.status.String()...)
	faults, warnings := r.faults, r.warnings
	if a.faultBytes > maxFaultBytes {
		if len(faults) > 0 {
			faults = faultsLeftOff
		}
		if len(warnings) > 0 {
			warnings = warningsLeftOff
		}
	}
	b = append(b, `","faults":[`...)
	before := len(b)
	for i := range faults {
		b = appendMembers(b, i, `{"pointer":`, faults[i].Pointer, `,"message":`, faults[i].Message)
	}
	b = append(b, ']')
	if len(warnings) > 0 && (r.status == accepted || r.status == duplicate) {
		b = append(b, `,"warnings":[`...)
		for i := range warnings {
			b = appendMembers(b, i, `{"code":`, warnings[i].Code, `,"pointer":`, warnings[i].Pointer, `,"message":`, warnings[i].Message)
		}
		b = append(b, ']')
	}
	a.faultBytes += len(b) - before
	a.text = append(b, "}\n"...)
}

// appendMembers appends element i of a list: an object of texts, given as name, value, name, value.
func appendMembers(b []byte, i int, members ...string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	for j := 0; j < len(members); j += 2 {
		b = appendText(append(b, members[j]...), members[j+1])
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(b, s)
	if err != nil {
		return append(b, `"(not UTF-8)"`...)
	}
	return quoted
}

// code returns the HTTP status for the outcomes of a body that was read to its end.
func (a *answer) code() int {
	stored, bad := a.counts[accepted]+a.counts[duplicate], a.counts[refused]+a.counts[forbidden]
	switch {
	case a.counts[retry] > 0:
		return http.StatusServiceUnavailable
	case bad == 0:
		return http.StatusOK
	case stored > 0:
		return http.StatusMultiStatus
	case a.counts[refused] == 0:
		return http.StatusForbidden
	default:
		return http.StatusBadRequest
	}
}
