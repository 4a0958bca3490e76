package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func refusalOf(err error) *schema.Refusal {
	var refusal *schema.Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	return &schema.Refusal{Reason: schema.ReasonInvalidTrace, Faults: []schema.Fault{{Message: err.Error()}}}
}

func foreign(agent string) *schema.Refusal {
	return &schema.Refusal{Reason: schema.ReasonForeignAgent, Faults: []schema.Fault{{
		Pointer: "/agent_id",
		Message: fmt.Sprintf("this token may not speak for agent %q: use that agent's token, or have the agent added to this one", agent),
	}}}
}

// refuse answers that the line will never be stored, and stores it as a dead letter.
func (u *upload) refuse(as status, refusal *schema.Refusal, line []byte) {
	u.results = append(u.results, result{
		line: u.lines.number, traceID: u.trace.TraceID, status: as, faults: refusal.Faults,
	})
	u.letters.add(wire.DeadLetter{
		Stage:  stageName,
		Reason: refusal.Reason,
		Faults: refusal.Faults,
		Agent:  u.speaker(as),
		Data:   excerpt(line),
	})
}

// speaker returns the agent that the credential proves, or "" if it is unknown which agent sent
// the line.
func (u *upload) speaker(as status) string {
	if claimed := u.trace.AgentID; as != forbidden && claimed != "" && u.grant.SpeaksFor(claimed) {
		return strings.Clone(claimed)
	}
	return u.grant.Agent()
}

// refuseLong refuses a line of which only the beginning is in memory.
func (u *upload) refuseLong(beginning []byte) {
	u.trace.TraceID, u.trace.AgentID = "", ""
	u.refuse(refused, &schema.Refusal{Reason: schema.ReasonTooLarge, Faults: []schema.Fault{{
		Message: fmt.Sprintf("more than %d bytes, a trace may have %d", len(beginning), schema.MaxTraceBytes),
	}}}, beginning)
}

// excerptBytes is the size of the part that is kept of a record that is too large, enough to
// recognise it.
const excerptBytes = 64 << 10

// excerpt copies the part of a line that its dead letter keeps.
func excerpt(line []byte) []byte {
	line = bytes.Trim(line, " \t\r\n")
	if len(line) > schema.MaxTraceBytes {
		line = line[:excerptBytes]
	}
	return slices.Clone(line)
}
