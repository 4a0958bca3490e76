package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

const (
	maxMarks     = 1000
	maxNoteBytes = 1000
)

// markDeadLetters records what an operator did about dead letters: one mark on many of them. The
// dead letters do not change.
func (a *API) markDeadLetters(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var asked struct {
		Mark    string          `json:"mark"`
		Digests []schema.Digest `json:"digests"` // of the dead letters' bytes
		Note    string          `json:"note"`
	}
	if err := a.router.JSON(w, r, 128<<10, &asked, "want {mark, digests, note}"); err != nil {
		return 0, err
	}
	var faults []schema.Fault
	check := func(ok bool, pointer, format string, args ...any) {
		if !ok {
			faults = append(faults, schema.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
		}
	}
	if asked.Mark == wire.MarkDropped { // from a client of an earlier version
		asked.Mark = wire.MarkResolved
	}
	check(asked.Mark == wire.MarkResolved || asked.Mark == wire.MarkReplayed, "/mark", "%q: want %s or %s",
		schema.Clip(asked.Mark, schema.MaxIDBytes), wire.MarkResolved, wire.MarkReplayed)
	check(len(asked.Digests) > 0 && len(asked.Digests) <= maxMarks, "/digests", "%d digests: want 1 to %d", len(asked.Digests), maxMarks)
	check(len(asked.Note) <= maxNoteBytes, "/note", "more than %d bytes", maxNoteBytes)
	if faults != nil {
		return 0, problem.Invalid(problem.WordInvalid, faults...)
	}
	marks := make([]wire.Mark, len(asked.Digests))
	for i, digest := range asked.Digests {
		marks[i] = wire.Mark{Digest: digest, Mark: asked.Mark, By: grant.Name, At: time.Now().UTC(), Note: asked.Note}
	}
	if err := a.broker.MarkDeadLetters(r.Context(), marks); err != nil {
		return 0, fmt.Errorf("mark dead letters: %w", err)
	}
	return problem.WriteJSON(w, http.StatusAccepted, map[string]int{"marked": len(marks)}), nil
}

// sessionEnd is the answer to a request to seal a session.
type sessionEnd struct {
	AgentID         string `json:"agent_id"`
	SessionID       string `json:"session_id"`
	ThroughSequence uint64 `json:"through_sequence,omitzero"`
}

// endSession requests that a session is sealed with all of its traces that were accepted before.
func (a *API) endSession(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var asked struct {
		AgentID   string `json:"agent_id"`
		SessionID string `json:"session_id"`
	}
	if err := a.router.JSON(w, r, 16<<10, &asked, "want {agent_id, session_id}"); err != nil {
		return 0, err
	}
	var faults []schema.Fault
	for _, id := range []struct{ pointer, value string }{{"/agent_id", asked.AgentID}, {"/session_id", asked.SessionID}} {
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
	if err := request.MaySpeakFor(grant, asked.AgentID); err != nil {
		return 0, err
	}
	state, err := a.broker.StreamState(r.Context(), stream.Traces)
	if err != nil {
		return 0, fmt.Errorf("ask for the newest trace: %w", err)
	}
	end := sessionEnd{asked.AgentID, asked.SessionID, state.LastSequence}
	if err := a.broker.RequestEnd(r.Context(), subject.Partition(end.AgentID), wire.EndRequest(end)); err != nil {
		return 0, fmt.Errorf("request the end of a session: %w", err)
	}
	return problem.WriteJSON(w, http.StatusAccepted, end), nil
}
