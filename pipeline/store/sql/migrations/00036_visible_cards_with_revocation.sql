-- +goose Up
-- Cards, each once, and whether and why each was revoked.
CREATE OR REPLACE VIEW visible_cards AS
SELECT
    c.tenant AS tenant, c.agent_id AS agent_id, c.card_id AS card_id, c.digest_hex AS digest, registered_at, shape, aap_version, issued_at, expires_at,
    if(r.card_id = '', NULL, toNullable(r.revoked_at)) AS revoked_at, r.reason AS revocation_reason,
    principal_type, principal_identifier, relationship, escalation_contact,
    declared_values, arrayZip(value_definitions.id, value_definitions.name, value_definitions.description, value_definitions.priority) AS value_definitions,
    conflicts_with, hierarchy, bounded_actions, forbidden_actions,
    arrayZip(escalation_triggers.condition, escalation_triggers.action, escalation_triggers.reason) AS escalation_triggers,
    max_value_amount, max_value_currency, trace_format, retention_days, storage_type, storage_location,
    queryable, query_endpoint, tamper_evidence, extensions, raw
FROM (SELECT *, digest_hex, extensions FROM cards FINAL) AS c
LEFT JOIN (SELECT tenant, agent_id, card_id, revoked_at, reason FROM revocations FINAL) AS r
    ON c.tenant = r.tenant AND c.agent_id = r.agent_id AND c.card_id = r.card_id;
