package store

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/database"
)

// members lists every member that AAP names in sections 4 to 6, 7.4 and 8.4, by section and path,
// with the table.column that stores it. It is derived from the specification and not from our
// types, so the test finds a member that the types forget.
var members = []struct{ section, member, home string }{
	{"4.2", "aap_version", "cards.aap_version"},
	{"4.2", "card_id", "cards.card_id"},
	{"4.2", "agent_id", "cards.agent_id"},
	{"4.2", "issued_at", "cards.issued_at"},
	{"4.2", "expires_at", "cards.expires_at"},
	{"4.3", "principal.type", "cards.principal_type"},
	{"4.3", "principal.identifier", "cards.principal_identifier"},
	{"4.3", "principal.relationship", "cards.relationship"},
	{"4.3", "principal.escalation_contact", "cards.escalation_contact"},
	{"4.4", "values.declared", "cards.declared_values"},
	{"4.4", "values.definitions", "cards.value_definitions.id"},
	{"4.4", "values.definitions.name", "cards.value_definitions.name"},
	{"4.4", "values.definitions.description", "cards.value_definitions.description"},
	{"4.4", "values.definitions.priority", "cards.value_definitions.priority"},
	{"4.4", "values.conflicts_with", "cards.conflicts_with"},
	{"4.4", "values.hierarchy", "cards.hierarchy"},
	{"4.5", "autonomy_envelope.bounded_actions", "cards.bounded_actions"},
	{"4.5", "autonomy_envelope.escalation_triggers.condition", "cards.escalation_triggers.condition"},
	{"4.5", "autonomy_envelope.escalation_triggers.action", "cards.escalation_triggers.action"},
	{"4.5", "autonomy_envelope.escalation_triggers.reason", "cards.escalation_triggers.reason"},
	{"4.5", "autonomy_envelope.max_autonomous_value.amount", "cards.max_value_amount"},
	{"4.5", "autonomy_envelope.max_autonomous_value.currency", "cards.max_value_currency"},
	{"4.5", "autonomy_envelope.forbidden_actions", "cards.forbidden_actions"},
	{"4.7", "audit_commitment.trace_format", "cards.trace_format"},
	{"4.7", "audit_commitment.retention_days", "cards.retention_days"},
	{"4.7", "audit_commitment.storage.type", "cards.storage_type"},
	{"4.7", "audit_commitment.storage.location", "cards.storage_location"},
	{"4.7", "audit_commitment.queryable", "cards.queryable"},
	{"4.7", "audit_commitment.query_endpoint", "cards.query_endpoint"},
	{"4.7", "audit_commitment.tamper_evidence", "cards.tamper_evidence"},
	{"4.8", "extensions", "cards.extensions"},

	{"5.3", "trace_id", "traces.trace_id"},
	{"5.3", "agent_id", "traces.agent_id"},
	{"5.3", "card_id", "traces.card_id"},
	{"5.3", "timestamp", "traces.event_time"},
	{"5.3", "action", "traces.action"},
	{"5.3", "decision", "traces.decision"},
	{"5.3", "escalation", "traces.escalation"},
	{"5.3", "context", "traces.context"},
	{"5.4", "action.type", "traces.action_type"},
	{"5.4", "action.name", "traces.action_name"},
	{"5.4", "action.category", "traces.action_category"},
	{"5.4", "action.target.type", "traces.target_type"},
	{"5.4", "action.target.identifier", "traces.target_identifier"},
	{"5.4", "action.parameters", "traces.parameters"},
	{"5.5", "decision.alternatives_considered", "traces.alternatives_considered"},
	{"5.5", "decision.alternatives_considered.option_id", "traces.option_ids"},
	{"5.5", "decision.alternatives_considered.description", "traces.option_descriptions"},
	{"5.5", "decision.alternatives_considered.score", "traces.option_scores"},
	{"5.5", "decision.alternatives_considered.scoring_factors", "traces.option_scoring_factors"},
	{"5.5", "decision.alternatives_considered.flags", "traces.option_flags"},
	{"5.5", "decision.selected", "traces.selected"},
	{"5.5", "decision.selection_reasoning", "traces.selection_reasoning"},
	{"5.5", "decision.values_applied", "traces.values_applied"},
	{"5.5", "decision.confidence", "traces.confidence"},
	{"5.6", "escalation.evaluated", "traces.escalation_evaluated"},
	{"5.6", "escalation.triggers_checked", "traces.triggers_checked"},
	{"5.6", "escalation.triggers_checked.trigger", "traces.triggers"},
	{"5.6", "escalation.triggers_checked.matched", "traces.triggers_matched"},
	{"5.6", "escalation.triggers_checked.value_observed", "traces.triggers_value_observed"},
	{"5.6", "escalation.required", "traces.escalation_required"},
	{"5.6", "escalation.reason", "traces.escalation_reason"},
	{"5.6", "escalation.escalation_id", "traces.escalation_id"},
	{"5.6", "escalation.escalation_status", "traces.escalation_status"},
	{"5.6", "escalation.principal_response", "traces.principal_response"},
	{"5.6", "escalation.principal_response.decision", "traces.response_decision"},
	{"5.6", "escalation.principal_response.timestamp", "traces.response_time"},
	{"5.6", "escalation.principal_response.conditions", "traces.response_conditions"},
	{"5.7", "context.session_id", "traces.session_id"},
	{"5.7", "context.conversation_turn", "traces.conversation_turn"},
	{"5.7", "context.prior_trace_ids", "traces.prior_trace_ids"},
	{"5.7", "context.environment", "traces.environment"},
	{"5.7", "context.metadata", "traces.metadata"},

	{"3.2", "request_id", "task_results.request_id"},
	{"3.2", "responder.agent_id", "task_results.responder_agent_id"},
	{"3.2", "responder.card_id", "task_results.responder_card_id"},
	{"3.2", "status", "task_results.status"},
	{"3.2", "result", "task_results.result"},
	{"3.2", "trace_reference.trace_ids", "task_results.trace_ids"},
	{"3.2", "trace_reference.session_id", "task_results.session_id"},
	{"3.2", "timestamp", "task_results.finished_at"},

	{"6.3.1", "request_id", "coherence_results.request_id"},
	{"6.3.1", "requester.agent_id", "coherence_results.initiator_agent_id"},
	{"6.3.1", "requester.card_id", "coherence_results.request"},
	{"6.3.1", "task_context.task_type", "coherence_results.request"},
	{"6.3.1", "task_context.values_required", "coherence_results.values_required"},
	{"6.3.1", "task_context.data_categories", "coherence_results.data_categories"},
	{"6.3.1", "timestamp", "coherence_results.requested_at"},
	{"6.3.3", "initiator_card_id", "coherence_results.initiator_card_id"},
	{"6.3.3", "responder_card_id", "coherence_results.responder_card_id"},
	{"6.3.3", "proposed_collaboration.task_type", "coherence_results.task_type"},
	{"6.3.3", "proposed_collaboration.values_intersection", "coherence_results.values_intersection"},
	{"6.3.3", "proposed_collaboration.data_sharing", "coherence_results.data_sharing"},
	{"6.3.3", "proposed_collaboration.autonomy_scope", "coherence_results.autonomy_scope"},
	{"6.3.3", "timestamp", "coherence_results.checked_at"},
	{"6.3.4", "coherence.compatible", "coherence_results.compatible"},
	{"6.3.4", "coherence.score", "coherence_results.score"},
	{"6.3.4", "coherence.value_alignment.matched", "coherence_results.matched"},
	{"6.3.4", "coherence.value_alignment.unmatched", "coherence_results.unmatched"},
	{"6.3.4", "coherence.value_alignment.conflicts.initiator_value", "coherence_results.conflicts.initiator_value"},
	{"6.3.4", "coherence.value_alignment.conflicts.responder_value", "coherence_results.conflicts.responder_value"},
	{"6.3.4", "coherence.value_alignment.conflicts.conflict_type", "coherence_results.conflicts.conflict_type"},
	{"6.3.4", "coherence.value_alignment.conflicts.description", "coherence_results.conflicts.description"},
	{"6.3.4", "proceed", "coherence_results.proceed"},
	{"6.3.4", "conditions", "coherence_results.conditions"},
	{"6.3.4", "proposed_resolution", "coherence_results.proposed_resolution"},
	{"6.3.4", "proposed_resolution.type", "coherence_results.resolution"},
	{"6.3.4", "timestamp", "coherence_results.answered_at"},

	{"7.4", "verified", "verdicts.verified"},
	{"7.4", "trace_id", "verdicts.trace_id"},
	{"7.4", "card_id", "verdicts.card_id"},
	{"7.4", "timestamp", "verdicts.verified_at"},
	{"7.4", "violations.type", "verdicts.violations.type"},
	{"7.4", "violations.severity", "verdicts.violations.severity"},
	{"7.4", "violations.description", "verdicts.violations.description"},
	{"7.4", "violations.trace_field", "verdicts.violations.trace_field"},
	{"7.4", "warnings.type", "verdicts.warnings.type"},
	{"7.4", "warnings.description", "verdicts.warnings.description"},
	{"7.4", "warnings.trace_field", "verdicts.warnings.trace_field"},
	{"7.4", "similarity_score", "verdicts.similarity_score"},
	{"7.4", "verification_metadata.algorithm_version", "verdicts.algorithm_version"},
	{"7.4", "verification_metadata.checks_performed", "verdicts.checks_performed"},
	{"7.4", "verification_metadata.similarity_details.similarities", "verdicts.similarities"},
	{"7.4", "verification_metadata.similarity_details.mean_similarity", "verdicts.mean_similarity"},
	{"7.4", "verification_metadata.similarity_details.trend", "verdicts.trend"},

	{"8.4", "alert_type", "drift_alerts.alert_type"},
	{"8.4", "agent_id", "drift_alerts.agent_id"},
	{"8.4", "card_id", "drift_alerts.card_id"},
	{"8.4", "detection_timestamp", "drift_alerts.detection_timestamp"},
	{"8.4", "analysis.similarity_score", "drift_alerts.similarity_score"},
	{"8.4", "analysis.sustained_traces", "drift_alerts.sustained_traces"},
	{"8.4", "analysis.threshold", "drift_alerts.threshold"},
	{"8.4", "analysis.drift_direction", "drift_alerts.drift_direction"},
	{"8.4", "analysis.specific_indicators.indicator", "drift_alerts.specific_indicators.indicator"},
	{"8.4", "analysis.specific_indicators.baseline", "drift_alerts.specific_indicators.baseline"},
	{"8.4", "analysis.specific_indicators.current", "drift_alerts.specific_indicators.current"},
	{"8.4", "analysis.specific_indicators.description", "drift_alerts.specific_indicators.description"},
	{"8.4", "recommendation", "drift_alerts.recommendation"},
	{"8.4", "trace_ids", "drift_alerts.trace_ids"},
}

func TestEveryMemberHasAColumn(t *testing.T) {
	s, _ := open(t)
	live := liveColumns(t, s)
	for _, m := range members {
		if !live[m.home] {
			t.Errorf("AAP %s %s: there is no column %s", m.section, m.member, m.home)
		}
	}
}

// docs/SCHEMA.md agrees with the table above, and names only columns that exist.
func TestSchemaDocument(t *testing.T) {
	s, _ := open(t)
	live := liveColumns(t, s)
	document := schemaDocument(t)
	for _, m := range members {
		row := "| " + m.section + " | `" + m.member + "` | `" + m.home + "` |"
		if !strings.Contains(document, row) {
			t.Errorf("docs/SCHEMA.md lacks: %s", row)
		}
	}
	for _, m := range regexp.MustCompile("\\| `([a-z_]+\\.[a-z_.]+)` \\|\n").FindAllStringSubmatch(document, -1) {
		if !live[m[1]] {
			t.Errorf("docs/SCHEMA.md names %s, which does not exist", m[1])
		}
	}
	for _, name := range append(slices.Clone(database.Tables), views(t, s)...) {
		if !strings.Contains(document, "`"+name+"`") {
			t.Errorf("docs/SCHEMA.md does not mention %s", name)
		}
	}
}

// The examples in the document run.
func TestSchemaDocumentExamples(t *testing.T) {
	s, _ := open(t)
	_, examples, found := strings.Cut(schemaDocument(t), "## Examples\n")
	if !found {
		t.Fatal("docs/SCHEMA.md has no examples")
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(examples), ";") {
		if statement == "" {
			continue
		}
		result, err := s.Query(t.Context(), statement)
		if err != nil {
			t.Errorf("%s: %v", statement, err)
			continue
		}
		for _, err := range result.Rows {
			if err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
}

func schemaDocument(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "SCHEMA.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func liveColumns(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	live := map[string]bool{}
	for _, name := range one[[]string](t, s, "SELECT groupArray(table || '.' || name) FROM system.columns WHERE database = currentDatabase()") {
		live[name] = true
	}
	return live
}

func views(t *testing.T, s *Store) []string {
	t.Helper()
	return one[[]string](t, s, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND engine = 'View'")
}

// Every view answers, on empty tables and on full ones.
func TestEveryViewAnswers(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	trace := numbered(t, 1)
	b.Add(trace, meta(trace, 1), wholeVerdict(trace))
	for range 2 {
		for _, view := range views(t, s) {
			result, err := s.Query(t.Context(), "SELECT * FROM "+view)
			if err != nil {
				t.Fatalf("%s: %v", view, err)
			}
			for _, err := range result.Rows {
				if err != nil {
					t.Errorf("%s: %v", view, err)
				}
			}
		}
		insert(t, s, b)
	}
}
