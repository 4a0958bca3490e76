-- +goose Up
-- Cards, each once.
CREATE OR REPLACE VIEW visible_cards AS
SELECT
    tenant, agent_id, card_id, digest_hex AS digest, registered_at, shape, aap_version, issued_at, expires_at,
    principal_type, principal_identifier, relationship, escalation_contact,
    declared_values, arrayZip(value_definitions.id, value_definitions.name, value_definitions.description, value_definitions.priority) AS value_definitions,
    conflicts_with, hierarchy, bounded_actions, forbidden_actions,
    arrayZip(escalation_triggers.condition, escalation_triggers.action, escalation_triggers.reason) AS escalation_triggers,
    max_value_amount, max_value_currency, trace_format, retention_days, storage_type, storage_location,
    queryable, query_endpoint, tamper_evidence, extensions, raw
FROM cards FINAL;
