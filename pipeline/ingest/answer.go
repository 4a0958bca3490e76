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

var faultsLeftOff = []schema.Fault{{Message: "has faults, but the answer is full: send this line in another request to learn them"}}

// answer is the body of the answer to a publisher: one JSON object for each line.
type answer struct {
	text       []byte
	faultBytes int
	counts     [statuses]int
}

func (a *answer) reset() { *a = answer{text: a.text[:0]} }

// add appends the outcome of a line.
func (a *answer) add(r *result) {
	a.counts[r.status]++
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
	b = append(b, `","faults":[`...)
	before := len(b)
	b = appendFaults(b, a.affordable(r.faults))
	b = append(b, ']')
	if len(r.warnings) > 0 && (r.status == accepted || r.status == duplicate) {
		b = appendWarnings(b, a.worthwhile(r.warnings))
	}
	a.faultBytes += len(b) - before
	a.text = append(b, "}\n"...)
}

var warningsLeftOff = []schema.Warning{{Code: schema.WarnLeftOff, Message: "has warnings, but the answer is full: send fewer lines in a request to learn them"}}

func (a *answer) worthwhile(warnings []schema.Warning) []schema.Warning {
	if a.faultBytes > maxFaultBytes {
		return warningsLeftOff
	}
	return warnings
}

func appendWarnings(b []byte, warnings []schema.Warning) []byte {
	b = append(b, `,"warnings":[`...)
	for i := range warnings {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"code":`...)
		b = appendText(b, warnings[i].Code)
		b = append(b, `,"pointer":`...)
		b = appendText(b, warnings[i].Pointer)
		b = append(b, `,"message":`...)
		b = appendText(b, warnings[i].Message)
		b = append(b, '}')
	}
	return append(b, ']')
}

func (a *answer) affordable(faults []schema.Fault) []schema.Fault {
	if len(faults) > 0 && a.faultBytes > maxFaultBytes {
		return faultsLeftOff
	}
	return faults
}

func appendFaults(b []byte, faults []schema.Fault) []byte {
	for i := range faults {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"pointer":`...)
		b = appendText(b, faults[i].Pointer)
		b = append(b, `,"message":`...)
		b = appendText(b, faults[i].Message)
		b = append(b, '}')
	}
	return b
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
