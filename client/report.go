package client

import (
	"log/slog"
	"sync"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The kinds of a RecordError (docs/CLIENTS.md).
const (
	KindInvalid     = "invalid"     // it is no trace and was not sent
	KindRefused     = "refused"     // ingest refused the trace for good
	KindForbidden   = "forbidden"   // the token may not speak for the agent
	KindUnreachable = "unreachable" // ingest cannot be reached or asks to wait: traces wait
	KindRequest     = "request"     // ingest refused the request itself: traces wait
	KindSpool       = "spool"       // the spool cannot be written or read
	KindDropped     = "dropped"     // traces were dropped
	KindInternal    = "internal"    // a bug in the recorder or in a value's own methods
)

// RecordError is what a recorder reports: it returns no errors to the agent.
type RecordError struct {
	Kind    string
	Message string
	TraceID string
	Faults  []schema.Fault
	Count   int // of traces dropped since the last report, or waiting
}

// Error returns the kind and the message.
func (e *RecordError) Error() string { return e.Kind + ": " + e.Message }

// reportEvery is how often a recorder reports errors of one kind that may repeat.
const reportEvery = 10 * time.Second

// reports passes errors and warnings on, and limits those that repeat.
type reports struct {
	onError   func(*RecordError)
	onWarning func(code, message, traceID string)

	mu    sync.Mutex
	told  map[string]time.Time // by kind
	drops *RecordError         // not reported so far
	codes map[string]bool      // of warnings
}

func (p *reports) report(e *RecordError) {
	switch e.Kind {
	case KindInvalid, KindRefused, KindForbidden:
		p.tell(e)
		return
	}
	p.mu.Lock()
	if e.Kind == KindDropped && p.drops != nil {
		e.Count += p.drops.Count
	}
	if p.told == nil {
		p.told = map[string]time.Time{}
	}
	early := time.Since(p.told[e.Kind]) < reportEvery
	switch {
	case !early:
		p.told[e.Kind] = time.Now()
		if e.Kind == KindDropped {
			p.drops = nil
		}
	case e.Kind == KindDropped:
		p.drops = e
	}
	p.mu.Unlock()
	if !early {
		p.tell(e)
	}
}

// last reports the traces that were dropped since the last report.
func (p *reports) last() {
	p.mu.Lock()
	e := p.drops
	p.drops = nil
	p.mu.Unlock()
	if e != nil {
		p.tell(e)
	}
}

func (p *reports) tell(e *RecordError) {
	defer logPanic("OnError")
	if p.onError != nil {
		p.onError(e)
		return
	}
	slog.Error("plumbline: "+e.Message, "kind", e.Kind, "trace_id", e.TraceID, "count", e.Count, "faults", e.Faults)
}

// warn passes the first warning of each code on.
func (p *reports) warn(code, message, traceID string) {
	p.mu.Lock()
	if p.codes == nil {
		p.codes = map[string]bool{}
	}
	known := p.codes[code]
	p.codes[code] = true
	p.mu.Unlock()
	if known {
		return
	}
	defer logPanic("OnWarning")
	if p.onWarning != nil {
		p.onWarning(code, message, traceID)
		return
	}
	slog.Warn("plumbline: "+message, "code", code, "trace_id", traceID)
}

func logPanic(callback string) {
	if fault := recover(); fault != nil {
		slog.Error("plumbline: "+callback+" panicked", "fault", fault)
	}
}
