package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// cardRow is a row of table cards (AAP section 4).
type cardRow struct {
	Owned
	AgentID             string        `ch:"agent_id"`
	CardID              string        `ch:"card_id"`
	Digest              schema.Digest `ch:"digest"`
	RegisteredAt        time.Time     `ch:"registered_at"`
	Shape               string        `ch:"shape"`
	Version             string        `ch:"aap_version"`
	IssuedAt            time.Time     `ch:"issued_at"`
	ExpiresAt           *time.Time    `ch:"expires_at"`
	PrincipalType       string        `ch:"principal_type"`
	PrincipalIdentifier string        `ch:"principal_identifier"`
	Relationship        string        `ch:"relationship"`
	EscalationContact   string        `ch:"escalation_contact"`
	DeclaredValues      []string      `ch:"declared_values"`
	DefinitionIDs       []string      `ch:"value_definitions.id"`
	DefinitionNames     []string      `ch:"value_definitions.name"`
	DefinitionTexts     []string      `ch:"value_definitions.description"`
	Priorities          []*float64    `ch:"value_definitions.priority"`
	ConflictsWith       []string      `ch:"conflicts_with"`
	Hierarchy           string        `ch:"hierarchy"`
	BoundedActions      []string      `ch:"bounded_actions"`
	ForbiddenActions    []string      `ch:"forbidden_actions"`
	TriggerConditions   []string      `ch:"escalation_triggers.condition"`
	TriggerActions      []string      `ch:"escalation_triggers.action"`
	TriggerReasons      []string      `ch:"escalation_triggers.reason"`
	MaxValueAmount      *float64      `ch:"max_value_amount"`
	MaxValueCurrency    string        `ch:"max_value_currency"`
	TraceFormat         string        `ch:"trace_format"`
	RetentionDays       uint32        `ch:"retention_days"`
	StorageType         string        `ch:"storage_type"`
	StorageLocation     string        `ch:"storage_location"`
	Queryable           bool          `ch:"queryable"`
	QueryEndpoint       string        `ch:"query_endpoint"`
	TamperEvidence      string        `ch:"tamper_evidence"`
	Raw                 []byte        `ch:"raw"`
}

func (w Writer) InsertCards(ctx context.Context, registered time.Time, cards []*schema.Card) error {
	rows := make([]cardRow, len(cards))
	for i, c := range cards {
		rows[i] = cardRow{
			AgentID: c.AgentID, CardID: c.CardID, Digest: c.Digest, RegisteredAt: registered,
			Shape: string(c.Shape), Version: c.Version, IssuedAt: c.IssuedAt,
			PrincipalType: c.Principal.Type, PrincipalIdentifier: c.Principal.Identifier,
			Relationship: c.Principal.Relationship, EscalationContact: c.Principal.EscalationContact,
			DeclaredValues: c.Values.Declared, ConflictsWith: c.Values.ConflictsWith, Hierarchy: c.Values.Hierarchy,
			BoundedActions: c.Autonomy.BoundedActions, ForbiddenActions: c.Autonomy.ForbiddenActions,
			MaxValueCurrency: c.Autonomy.MaxAutonomousValue.Currency,
			TraceFormat:      c.Audit.TraceFormat, RetentionDays: uint32(c.Audit.RetentionDays),
			StorageType: c.Audit.StorageType, StorageLocation: c.Audit.StorageLocation,
			Queryable: c.Audit.Queryable, QueryEndpoint: c.Audit.QueryEndpoint, TamperEvidence: c.Audit.TamperEvidence,
			Raw: c.Raw,
		}
		row := &rows[i]
		if !c.ExpiresAt.IsZero() {
			row.ExpiresAt = &c.ExpiresAt
		}
		if c.Autonomy.MaxAutonomousValue.Present {
			row.MaxValueAmount = &c.Autonomy.MaxAutonomousValue.Amount
		}
		for j := range c.Values.Definitions {
			d := &c.Values.Definitions[j]
			var priority *float64
			if d.HasPriority {
				priority = &d.Priority
			}
			row.DefinitionIDs = append(row.DefinitionIDs, d.ID)
			row.DefinitionNames = append(row.DefinitionNames, d.Name)
			row.DefinitionTexts = append(row.DefinitionTexts, d.Description)
			row.Priorities = append(row.Priorities, priority)
		}
		for _, t := range c.Autonomy.EscalationTriggers {
			row.TriggerConditions = append(row.TriggerConditions, t.Condition)
			row.TriggerActions = append(row.TriggerActions, string(t.Action))
			row.TriggerReasons = append(row.TriggerReasons, t.Reason)
		}
	}
	return insertRows(ctx, w, "cards", rows)
}

// cardPosition is a row of table card_positions.
type cardPosition struct {
	Owned
	StreamCreated time.Time `ch:"stream_created"`
	Revision      uint64    `ch:"revision"`
	SettledAt     time.Time `ch:"settled_at"`
}

// InsertCardPosition records that every card of a bucket, created at the given time, is a row up to
// a revision, and that the traces that came before it are judged.
func (w Writer) InsertCardPosition(ctx context.Context, bucketCreated time.Time, revision uint64) error {
	return insertRows(ctx, w, "card_positions", []cardPosition{{StreamCreated: bucketCreated, Revision: revision, SettledAt: time.Now()}})
}

// CardPosition returns the revision that InsertCardPosition recorded last, 0 if there is none, and
// the number of cards that are rows.
func (r Reader) CardPosition(ctx context.Context, bucketCreated time.Time) (revision, cards uint64, err error) {
	type position struct {
		Revision uint64 `ch:"revision"`
		Cards    uint64 `ch:"cards"`
	}
	rows, err := read[position](ctx, r.db, "the position of table cards", queryCardPosition, clickhouse.Named("created", nanoseconds(bucketCreated)))
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	return rows[0].Revision, rows[0].Cards, nil
}

// MaxAgents is how many agents one query may name.
const MaxAgents = 5_000

// RegisteredCards passes the id and the retention of each card of some agents to take, in any order. Pass
// at most MaxAgents.
func (r Reader) RegisteredCards(ctx context.Context, agents []string, take func(agentID, cardID string, retentionDays uint32)) error {
	type card struct {
		AgentID       string `ch:"agent_id"`
		CardID        string `ch:"card_id"`
		RetentionDays uint32 `ch:"retention_days"`
	}
	for row, err := range each[card](ctx, r.db, "the cards of agents", queryRegisteredCards, clickhouse.Named("agents", agents)) {
		if err != nil {
			return err
		}
		take(row.AgentID, row.CardID, row.RetentionDays)
	}
	return nil
}

// CardFacts is what the row of a card says of the card.
type CardFacts struct {
	AgentID          string   `ch:"agent_id"`
	CardID           string   `ch:"card_id"`
	RetentionDays    uint32   `ch:"retention_days"`
	DeclaredValues   []string `ch:"declared_values"`
	BoundedActions   []string `ch:"bounded_actions"`
	ForbiddenActions []string `ch:"forbidden_actions"`
	Conditions       []string `ch:"conditions"` // of the escalation triggers
}

// CardFacts returns what the rows say of each card of some agents, in any order. Pass at most MaxAgents.
func (r Reader) CardFacts(ctx context.Context, agents []string) ([]CardFacts, error) {
	return read[CardFacts](ctx, r.db, "the facts of agents' cards", queryCardFacts, clickhouse.Named("agents", agents))
}

type revocationRow struct {
	Owned
	AgentID   string    `ch:"agent_id"`
	CardID    string    `ch:"card_id"`
	RevokedAt time.Time `ch:"revoked_at"`
	Reason    string    `ch:"reason"`
}

func (w Writer) InsertRevocations(ctx context.Context, revoked []schema.Revocation) error {
	rows := make([]revocationRow, len(revoked))
	for i, r := range revoked {
		rows[i] = revocationRow{AgentID: r.AgentID, CardID: r.CardID, RevokedAt: r.RevokedAt, Reason: r.Reason}
	}
	return insertRows(ctx, w, "revocations", rows)
}
