package ingest

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// sessionEnd is the request to seal a session. With ThroughSequence it is also the answer.
type sessionEnd struct {
	AgentID         string `json:"agent_id"`
	SessionID       string `json:"session_id"`
	ThroughSequence uint64 `json:"through_sequence,omitzero"`
}

// endSession requests that a session is sealed with all of its traces that were accepted before.
func (s *server) endSession(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	raw, p := s.document(w, r, 16<<10, typesOfOther...)
	if p != nil {
		return p.write(w)
	}
	end, p := readEnd(raw)
	if p != nil {
		return p.write(w)
	}
	if !grant.SpeaksFor(end.AgentID) {
		return problemf(http.StatusForbidden, "forbidden", "%s", foreign(end.AgentID).Faults[0].Message).write(w)
	}
	state, err := s.sessions.StreamState(r.Context(), stream.Traces)
	if err != nil {
		return s.failure("ask for the newest trace", err).write(w)
	}
	end.ThroughSequence = state.LastSequence
	if err := s.sessions.RequestEnd(r.Context(), subject.Partition(end.AgentID), wire.EndRequest(end)); err != nil {
		return s.failure("request the end of a session", err).write(w)
	}
	return writeJSON(w, http.StatusAccepted, end)
}

// readEnd decodes {"agent_id", "session_id"}, both strings.
func readEnd(raw []byte) (end sessionEnd, p *problem) {
	var given struct {
		AgentID   string `json:"agent_id"`
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal(raw, &given, json.RejectUnknownMembers(true)); err != nil {
		return end, unreadable("want {agent_id, session_id}", err)
	}
	p = problemf(http.StatusBadRequest, "invalid_request", "it is not valid: see the faults")
	for _, id := range []struct{ name, value string }{{"agent_id", given.AgentID}, {"session_id", given.SessionID}} {
		switch {
		case id.value == "":
			p.Faults = append(p.Faults, schema.Fault{Pointer: "/" + id.name, Message: "is missing (required)"})
		case len(id.value) > schema.MaxIDBytes:
			p.Faults = append(p.Faults, schema.Fault{Pointer: "/" + id.name, Message: "is too long"})
		}
	}
	if len(p.Faults) > 0 {
		return end, p
	}
	return sessionEnd{AgentID: given.AgentID, SessionID: given.SessionID}, nil
}
