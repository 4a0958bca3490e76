package store

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// CoherenceResult is an answered handshake (AAP section 6): its messages, and what the broker
// knows about the result.
type CoherenceResult struct {
	ID          schema.Digest // of the handshake
	Transport   string
	Initiator   string    // agent ids
	Responder   string    //
	Received    time.Time // by the broker
	RetainUntil time.Time // zero: forever

	Request *schema.CardRequest
	Check   *schema.CoherenceCheck
	Result  *schema.CoherenceResult
}

type coherenceRow struct {
	Owned
	EventHour          uint32        `ch:"event_hour"`
	Initiator          string        `ch:"initiator_agent_id"`
	Responder          string        `ch:"responder_agent_id"`
	ID                 schema.Digest `ch:"handshake_id"`
	RequestID          string        `ch:"request_id"`
	Transport          string        `ch:"transport"`
	RequestedAt        time.Time     `ch:"requested_at"`
	CheckedAt          time.Time     `ch:"checked_at"`
	AnsweredAt         time.Time     `ch:"answered_at"`
	Received           time.Time     `ch:"received_at"`
	RetainUntil        RetainUntil   `ch:"retain_until"`
	InitiatorCardID    string        `ch:"initiator_card_id"`
	ResponderCardID    string        `ch:"responder_card_id"`
	InitiatorDigest    schema.Digest `ch:"initiator_digest"`
	ResponderDigest    schema.Digest `ch:"responder_digest"`
	TaskType           string        `ch:"task_type"`
	ValuesRequired     []string      `ch:"values_required"`
	DataCategories     []string      `ch:"data_categories"`
	ValuesIntersection []string      `ch:"values_intersection"`
	RequiredFrom       string        `ch:"required_from"`
	Compatible         bool          `ch:"compatible"`
	Score              float64       `ch:"score"`
	Matched            []string      `ch:"matched"`
	Unmatched          []string      `ch:"unmatched"`

	InitiatorValues []string `ch:"conflicts.initiator_value"`
	ResponderValues []string `ch:"conflicts.responder_value"`
	Types           []string `ch:"conflicts.conflict_type"`
	Descriptions    []string `ch:"conflicts.description"`
	ResolvedBy      []string `ch:"conflicts.resolved_by"`

	Proceed    bool     `ch:"proceed"`
	Conditions []string `ch:"conditions"`
	Resolution string   `ch:"resolution"`

	Codes       []string `ch:"reasons.code"`
	Sides       []string `ch:"reasons.side"`
	AgentIDs    []string `ch:"reasons.agent_id"`
	CardIDs     []string `ch:"reasons.card_id"`
	ReasonTexts []string `ch:"reasons.description"`

	StepKinds    []string `ch:"resolution_steps.step"`
	StepSubjects []string `ch:"resolution_steps.subject"`
	StepSides    []string `ch:"resolution_steps.side"`
	StepOutcomes []string `ch:"resolution_steps.outcome"`
	StepReasons  []string `ch:"resolution_steps.reason"`

	EngineVersion string  `ch:"engine_version"`
	Profile       string  `ch:"profile"`
	MinCoherence  float64 `ch:"min_coherence"`
	Methodology   string  `ch:"methodology"`
	KeyID         string  `ch:"key_id"`
	Request       []byte  `ch:"request"`
	Check         []byte  `ch:"check"`
	Result        []byte  `ch:"result"`
}

func (w Writer) InsertCoherenceResults(ctx context.Context, results []CoherenceResult) error {
	rows := make([]coherenceRow, len(results))
	for i := range results {
		c, row := &results[i], &rows[i]
		result, metadata := c.Result, &c.Result.Metadata
		*row = coherenceRow{
			EventHour: eventHour(c.Request.Timestamp), Initiator: c.Initiator, Responder: c.Responder, ID: c.ID,
			RequestID: c.Request.RequestID, Transport: c.Transport,
			RequestedAt: c.Request.Timestamp, CheckedAt: c.Check.Timestamp, AnsweredAt: result.Timestamp,
			Received: c.Received, RetainUntil: RetainUntil(c.RetainUntil),
			InitiatorCardID: c.Check.InitiatorCardID, ResponderCardID: c.Check.ResponderCardID,
			InitiatorDigest: metadata.InitiatorDigest, ResponderDigest: metadata.ResponderDigest,
			TaskType: c.Check.Proposal.TaskType, ValuesIntersection: c.Check.Proposal.ValuesIntersection,
			RequiredFrom: string(metadata.RequiredFrom),
			Compatible:   result.Coherence.Compatible, Score: result.Coherence.Score,
			Matched: result.Coherence.Alignment.Matched, Unmatched: result.Coherence.Alignment.Unmatched,
			Proceed: result.Proceed, Conditions: result.Conditions,
			EngineVersion: metadata.EngineVersion, Profile: metadata.Profile,
			MinCoherence: metadata.MinCoherence, Methodology: metadata.Methodology,
			Request: c.Request.Raw, Check: c.Check.Raw, Result: result.Raw,
		}
		if task := c.Request.TaskContext; task != nil {
			row.ValuesRequired, row.DataCategories = task.ValuesRequired, task.DataCategories
		}
		if result.ProposedResolution != nil {
			row.Resolution = string(result.ProposedResolution.Type)
		}
		if result.Signature != nil {
			row.KeyID = result.Signature.KeyID
		}
		for _, c := range result.Coherence.Alignment.Conflicts {
			row.InitiatorValues = append(row.InitiatorValues, c.InitiatorValue)
			row.ResponderValues = append(row.ResponderValues, c.ResponderValue)
			row.Types = append(row.Types, c.ConflictType)
			row.Descriptions = append(row.Descriptions, c.Description)
			row.ResolvedBy = append(row.ResolvedBy, string(c.ResolvedBy))
		}
		for _, r := range result.Reasons {
			row.Codes = append(row.Codes, r.Code)
			row.Sides = append(row.Sides, string(r.Side))
			row.AgentIDs = append(row.AgentIDs, r.AgentID)
			row.CardIDs = append(row.CardIDs, r.CardID)
			row.ReasonTexts = append(row.ReasonTexts, r.Description)
		}
		for _, step := range result.ResolutionSteps {
			row.StepKinds = append(row.StepKinds, string(step.Step))
			row.StepSubjects = append(row.StepSubjects, step.Subject)
			row.StepSides = append(row.StepSides, string(step.Side))
			row.StepOutcomes = append(row.StepOutcomes, string(step.Outcome))
			row.StepReasons = append(row.StepReasons, step.Reason)
		}
	}
	return insertRows(ctx, w, "coherence_results", rows)
}

// TaskResult is the result of a task that two agents agreed on (AAP section 3.2, step 6), and
// what the broker knows about it.
type TaskResult struct {
	Digest      schema.Digest // of the JCS form of the message
	Transport   string
	Initiator   string // agent ids
	Responder   string
	Received    time.Time // by the broker
	RetainUntil time.Time // zero: forever

	Message *schema.TaskResult
}

type taskRow struct {
	Owned
	EventHour   uint32        `ch:"event_hour"`
	Initiator   string        `ch:"initiator_agent_id"`
	Responder   string        `ch:"responder_agent_id"`
	Digest      schema.Digest `ch:"digest"`
	RequestID   string        `ch:"request_id"`
	Transport   string        `ch:"transport"`
	FinishedAt  time.Time     `ch:"finished_at"`
	Received    time.Time     `ch:"received_at"`
	RetainUntil RetainUntil   `ch:"retain_until"`
	CardID      string        `ch:"responder_card_id"`
	Status      string        `ch:"status"`
	TraceIDs    []string      `ch:"trace_ids"`
	SessionID   string        `ch:"session_id"`
	KeyID       string        `ch:"key_id"`
	Message     []byte        `ch:"message"`
}

func (w Writer) InsertTaskResults(ctx context.Context, results []TaskResult) error {
	rows := make([]taskRow, len(results))
	for i := range results {
		r, m := &results[i], results[i].Message
		rows[i] = taskRow{
			EventHour: eventHour(m.Timestamp), Initiator: r.Initiator, Responder: r.Responder, Digest: r.Digest,
			RequestID: m.RequestID, Transport: r.Transport, FinishedAt: m.Timestamp, Received: r.Received,
			RetainUntil: RetainUntil(r.RetainUntil), CardID: m.Responder.CardID, Status: string(m.Status),
			TraceIDs: m.TraceReference.TraceIDs, SessionID: m.TraceReference.SessionID, Message: m.Raw,
		}
		if m.Signature != nil {
			rows[i].KeyID = m.Signature.KeyID
		}
	}
	return insertRows(ctx, w, "task_results", rows)
}
