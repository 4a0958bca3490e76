package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

const (
	maxMarks     = 1000
	maxNoteBytes = 1000
)

// asked returns who asks for a change, for the operator's ledger.
func asked(r *http.Request, grant auth.Grant) events.Asked {
	from := events.FromAPI
	if r.Header.Get(transport.HeaderFrom) == events.FromConsole {
		from = events.FromConsole
	}
	return events.Asked{By: grant.Name, From: from, At: time.Now().UTC()}
}

// record appends an event to the operator's ledger. What it is about is done afterwards.
func (a *API) record(ctx context.Context, event ledger.Event, err error) error {
	if err != nil {
		return err
	}
	return a.broker.AppendLedger(ctx, event)
}

// markDeadLetters records what an operator does about dead letters: one mark on many of them. The
// dead letters do not change.
func (a *API) markDeadLetters(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var ask struct {
		Mark    string          `json:"mark"`
		Digests []schema.Digest `json:"digests"` // of the dead letters' bytes
		Note    string          `json:"note"`
	}
	if err := a.router.JSON(w, r, 128<<10, &ask, "want {mark, digests, note}"); err != nil {
		return 0, err
	}
	var faults []schema.Fault
	check := func(ok bool, pointer, format string, args ...any) {
		if !ok {
			faults = append(faults, schema.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
		}
	}
	if ask.Mark == wire.MarkDropped { // from a client of an earlier version
		ask.Mark = wire.MarkResolved
	}
	known := []string{wire.MarkResolved, wire.MarkReplaying, wire.MarkReplayed}
	check(slices.Contains(known, ask.Mark), "/mark", "%q: want one of %s", schema.Clip(ask.Mark, schema.MaxIDBytes), strings.Join(known, ", "))
	check(len(ask.Digests) > 0 && len(ask.Digests) <= maxMarks, "/digests", "%d digests: want 1 to %d", len(ask.Digests), maxMarks)
	check(len(ask.Note) <= maxNoteBytes, "/note", "more than %d bytes", maxNoteBytes)
	if faults != nil {
		return 0, problem.Invalid(problem.WordInvalid, faults...)
	}
	who := asked(r, grant)
	event, err := events.DeadLetters{Mark: ask.Mark, SHA256: ask.Digests, Note: ask.Note, Asked: who}.Event()
	if err := a.record(r.Context(), event, err); err != nil {
		return 0, fmt.Errorf("record a mark on dead letters: %w", err)
	}
	if ask.Mark != wire.MarkReplaying {
		marks := make([]wire.Mark, len(ask.Digests))
		for i, digest := range ask.Digests {
			marks[i] = wire.Mark{Digest: digest, Mark: ask.Mark, By: who.By, At: who.At, Note: ask.Note}
		}
		if err := a.broker.MarkDeadLetters(r.Context(), marks); err != nil {
			return 0, fmt.Errorf("mark dead letters: %w", err)
		}
	}
	return problem.WriteJSON(w, http.StatusAccepted, map[string]int{"marked": len(ask.Digests)}), nil
}

// sessionEnd is the answer to a request to seal a session.
type sessionEnd struct {
	AgentID         string `json:"agent_id"`
	SessionID       string `json:"session_id"`
	ThroughSequence uint64 `json:"through_sequence,omitzero"`
}

// endSession requests that a session is sealed with all of its traces that were accepted before.
func (a *API) endSession(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var ask struct {
		AgentID   string `json:"agent_id"`
		SessionID string `json:"session_id"`
	}
	if err := a.router.JSON(w, r, 16<<10, &ask, "want {agent_id, session_id}"); err != nil {
		return 0, err
	}
	var faults []schema.Fault
	for _, id := range []struct{ pointer, value string }{{"/agent_id", ask.AgentID}, {"/session_id", ask.SessionID}} {
		switch {
		case id.value == "":
			faults = append(faults, schema.Fault{Pointer: id.pointer, Message: "is missing (required)"})
		case len(id.value) > schema.MaxIDBytes:
			faults = append(faults, schema.Fault{Pointer: id.pointer, Message: fmt.Sprintf("%d bytes: want at most %d", len(id.value), schema.MaxIDBytes)})
		}
	}
	if faults != nil {
		return 0, problem.Invalid(problem.WordInvalid, faults...)
	}
	if err := request.MaySpeakFor(grant, ask.AgentID); err != nil {
		return 0, err
	}
	state, err := a.broker.StreamState(r.Context(), stream.Traces)
	if err != nil {
		return 0, fmt.Errorf("ask for the newest trace: %w", err)
	}
	end := sessionEnd{ask.AgentID, ask.SessionID, state.LastSequence}
	event, err := events.SessionEnd{AgentID: end.AgentID, SessionID: end.SessionID, ThroughSequence: end.ThroughSequence, Asked: asked(r, grant)}.Event()
	if err := a.record(r.Context(), event, err); err != nil {
		return 0, fmt.Errorf("record the end of a session: %w", err)
	}
	request := wire.EndRequest{AgentID: end.AgentID, SessionID: end.SessionID, ThroughSequence: end.ThroughSequence, Stream: state.Created.UnixNano()}
	if err := a.broker.RequestEnd(r.Context(), subject.Partition(end.AgentID), request); err != nil {
		return 0, fmt.Errorf("request the end of a session: %w", err)
	}
	return problem.WriteJSON(w, http.StatusAccepted, end), nil
}
