package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/reload"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Publisher stores traces durably (stream.Committer).
type Publisher interface {
	Publish(ctx context.Context, records []stream.Record) ([]stream.Outcome, error)
}

const (
	// chunkLines is how many lines are committed together: one full batch of the broker. There
	// are fewer when they fill the window.
	chunkLines = 1000
	// maxLines limits the size of the answer to one request.
	maxLines = 100_000
)

// The media types of traces: lines, or one trace.
var (
	typesOfLines  = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
	typesOfTrace  = []string{request.TypeTrace, request.TypeJSON}
	typesOfTraces = slices.Concat(typesOfLines, typesOfTrace)
)

// upload is one POST /v1/traces in progress.
type upload struct {
	*server
	*buffers
	grant     auth.Grant
	began     time.Time
	recheck   func() error // returns a problem if the token is not valid any more
	report    func(*result)
	parent    string // traceparent of the span in which the next lines are published; empty: none
	lines     lines
	forgotten time.Time // lines with an earlier timestamp may have copies that the broker does not recognise
	unread    bool      // the body may have more lines
	suspect   bool      // the broker's client may still use parts of the window
}

// postTraces stores the traces of a body and answers with the outcome of each line. The router
// has checked the token. Until the answer is written, a crash leaves the publisher without one: it
// sends the body again, and commit says why nothing is stored twice.
func (s *server) postTraces(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	kind, err := request.MediaType(r, typesOfTraces...)
	if err != nil && strings.HasPrefix(r.Header.Get("Content-Type"), typeProtobuf) {
		err = problem.New(http.StatusUnsupportedMediaType, "media_type", "spans of OpenTelemetry are received at %s: %s", pathSpans, spansHint)
	}
	if err != nil {
		return 0, err
	}
	held := s.router.Hold(r)
	defer held.Release()
	if err := held.Grow(r.Context(), int64(windowSizes[0])); err != nil {
		return 0, err
	}
	reused := s.pool.take()
	body, err := s.router.Body(w, r, &reused.unzip, s.cfg.MaxBodyBytes)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	u := upload{server: s, buffers: reused, grant: grant, began: now, forgotten: now.Add(-recognised)}
	u.recheck = func() error { return s.router.Recheck(r, auth.TracesWrite) }
	u.report, u.parent = u.answer.add, wire.Traceparent(r.Header.Get(wire.HeaderTraceparent))
	u.lines = lines{body: body, whole: slices.Contains(typesOfTrace, kind), window: u.windows[0]}
	u.lines.larger = func(wait bool) ([]byte, error) {
		next := len(u.windows)
		if next == len(windowSizes) || !wait && !held.TryGrow(int64(windowSizes[next])) {
			return nil, nil
		}
		if wait {
			if err := held.Grow(r.Context(), int64(windowSizes[next])); err != nil {
				return nil, err
			}
		}
		return s.pool.larger(u.buffers), nil
	}
	code := u.reply(w, u.run(r.Context()))
	if !u.suspect {
		s.pool.giveBack(reused)
	}
	return code, nil
}

// run admits and commits chunk after chunk, up to the end of the body. In every case the answer
// holds the outcome of each line that was read. The returned problem is why the rest was not
// read.
func (u *upload) run(ctx context.Context) *problem.Problem {
	for {
		end := u.fill()
		u.unread = !errors.Is(end, io.EOF)
		if p := u.commit(ctx); p != nil {
			return p
		}
		switch {
		case !u.unread:
			return nil
		case end != nil && !errors.Is(end, errWindowFull):
			return request.BodyProblem(end)
		case u.answer.lines >= maxLines:
			return problem.New(http.StatusRequestEntityTooLarge, "too_large", "more than %d lines: send them in several requests", maxLines)
		case u.stopping():
			return problem.Unavailable(0, "the service is stopping: send the rest to another instance, or later")
		}
		u.lines.release()
	}
}

// fill admits lines until the chunk is full (it returns nil or errWindowFull) or the body ends
// (any other error). It changes only memory.
func (u *upload) fill() error {
	for len(u.results) < chunkLines {
		line, err := u.lines.next()
		if errors.Is(err, errLineLong) { // only its beginning is in memory
			u.trace.TraceID, u.trace.AgentID = "", ""
			u.refuse(refused, schema.ReasonTooLarge, line, schema.Fault{
				Message: fmt.Sprintf("more than %d bytes, a trace may have %d", len(line), schema.MaxTraceBytes)})
			continue
		}
		if err == nil {
			err = u.admit(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// admit turns the line into a record or a refusal. With the error errWindowFull the line must be
// read again.
func (u *upload) admit(line []byte) error {
	t := &u.trace
	if err := u.decoder.Admit(t, "", line); err != nil {
		first := u.lines.number
		b, full := u.lines.block(line)
		refusal, ok := errors.AsType[*schema.Refusal](err)
		switch {
		case full != nil:
			return full
		case b != nil:
			t.TraceID, t.AgentID = "", ""
			u.refuse(refused, schema.ReasonInvalidJSON, b.text, b.fault())
			last := &u.results[len(u.results)-1]
			last.line, last.through = first, b.through
		case ok:
			u.refuse(refused, refusal.Reason, line, u.advise(line, refusal.Faults)...)
		default:
			u.refuse(refused, schema.ReasonInvalidTrace, line, schema.Fault{Message: err.Error()})
		}
		return nil
	}
	if !u.grant.SpeaksFor(t.AgentID) {
		u.refuse(forbidden, schema.ReasonForeignAgent, line, request.Foreign(t.AgentID))
		return nil
	}
	u.results = append(u.results, result{line: u.lines.number, traceID: t.TraceID, warnings: u.warnings(), name: u.conflicts.name(t.AgentID, t.TraceID)})
	if u.reader != nil && t.Timestamp.Before(u.forgotten) {
		u.old = append(u.old, oldLine{result: len(u.results) - 1, record: len(u.records), at: t.Timestamp})
	}
	u.records = append(u.records, stream.Record{Agent: t.AgentID, Data: t.Raw, Digest: t.Digest, Parent: u.parent})
	return nil
}

// advise returns the faults of a line with what to do, where it is known what the publisher meant.
func (u *upload) advise(line []byte, faults []schema.Fault) []schema.Fault {
	first := &faults[0]
	switch {
	case strings.HasPrefix(first.Message, schema.Truncated) && !u.lines.whole:
		first.Message = "the line " + first.Message + ": put each trace on one line (jq -c), or send one trace a request with Content-Type: application/json"
	case first.Pointer == "" && bytes.HasPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte{'['}):
		first.Message = "this is an array: send one JSON object per line, not an array (jq -c '.[]')"
	case bytes.Contains(line, []byte(`"resourceSpans"`)):
		first.Message += "; spans of OpenTelemetry are received at " + pathSpans + ": " + spansHint
	}
	return faults
}

// excerptBytes is the size of the part that is kept of a record that is too large, enough to
// recognise it.
const excerptBytes = 64 << 10

// refuse answers that the line will never be stored, and queues it as a dead letter. A crash loses
// queued dead letters; the publisher has the refusal, or sends the line again.
func (u *upload) refuse(as status, reason string, line []byte, faults ...schema.Fault) {
	u.results = append(u.results, result{line: u.lines.number, traceID: u.trace.TraceID, status: as, faults: faults})
	// The dead letter names an agent only if the credential proves it.
	agent := u.grant.Agent()
	if claimed := u.trace.AgentID; as != forbidden && claimed != "" && u.grant.SpeaksFor(claimed) {
		agent = strings.Clone(claimed)
	}
	kept := bytes.Trim(line, " \t\r\n")
	if len(kept) > schema.MaxTraceBytes {
		kept = kept[:excerptBytes]
	}
	u.deadLetters.add(wire.DeadLetter{Stage: stageName, Reason: reason, Faults: faults, Agent: agent, Data: slices.Clone(kept)})
}

// commit makes the chunk durable and reports the outcome of its lines. The returned problem is the
// reason why the broker did not accept some of it.
//
// A crash during it leaves a part of the chunk in the stream. The lines are sent again under the
// same message ids, which name the content: the broker drops those that it still remembers, and
// rows of later copies collapse when they are read.
func (u *upload) commit(ctx context.Context) *problem.Problem {
	var outcomes []stream.Outcome
	var err error
	if len(u.old) > 0 {
		u.dropStored(ctx)
	}
	if time.Since(u.began) > reload.Recheck { // a body may arrive for minutes, and its token be revoked meanwhile
		err = u.recheck()
	}
	if len(u.records) > 0 && err == nil {
		began := time.Now()
		// The request may end early because its body is cut off, but the lines that arrived are
		// complete.
		outcomes, err = u.traces.Publish(context.WithoutCancel(ctx), u.records)
		u.metrics.commitRows.Observe(float64(len(u.records)))
		u.metrics.commitTime.Observe(time.Since(began).Seconds())
	}
	for i := range outcomes { // a record that the broker never accepts is reported in its outcome alone
		if own := outcomes[i].Err; err == nil && own != nil && !errors.Is(own, stream.ErrTooLarge) {
			err = own
		}
	}
	var failed *problem.Problem
	var notStored []schema.Fault
	if err != nil {
		u.suspect = true
		failed = u.router.Failure("publish traces", err)
		notStored = []schema.Fault{{Message: "not stored: " + failed.Message}}
	}
	next := 0 // index of the next record
	for i := range u.results {
		r := &u.results[i]
		if r.status == pending {
			switch {
			case next >= len(outcomes):
				r.status, r.faults = retry, notStored
			case errors.Is(outcomes[next].Err, stream.ErrTooLarge):
				r.status, r.faults = refused, []schema.Fault{{Message: outcomes[next].Err.Error()}}
			case outcomes[next].Err != nil:
				r.status, r.faults = retry, notStored
			case outcomes[next].Duplicate:
				u.finish(r, duplicate, u.records[next].Digest)
			default:
				u.finish(r, accepted, u.records[next].Digest)
			}
			next++
		}
		u.report(r)
		u.metrics.lines[r.status].Inc()
	}
	u.clear()
	return failed
}

// reply writes the answer. A problem that left lines unread becomes a last line, which names the
// line from which to send again. A crash before the answer has arrived loses nothing.
func (u *upload) reply(w http.ResponseWriter, p *problem.Problem) int {
	if u.answer.lines == 0 {
		if p == nil {
			p = problem.New(http.StatusBadRequest, "empty", "the body has no trace: send one JSON object a line")
		}
		return p.Write(w)
	}
	code := u.answer.code()
	if p != nil {
		code = p.Code
		p.SetHeaders(w.Header())
		if u.unread {
			u.answer.add(&result{line: u.lines.number + 1, status: retry, faults: []schema.Fault{{
				Message: "this line and the lines after it were not read: " + p.Message,
			}}})
		}
	}
	w.Header().Set("Content-Type", typesOfLines[0])
	return problem.WriteText(w, code, u.answer.text)
}
