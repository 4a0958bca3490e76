-- +goose Up
-- Decisions about messages, tool calls and tool results, each once.
CREATE OR REPLACE VIEW visible_messages AS
SELECT
    event_hour, tenant, agent_id, session_id, record_id, kind, decided_at, received_at, mode, outcome, reason, detail,
    message_id, source, sender, intents, inferred, approves, approved, approval_id, key_id, content_sha256, stripped,
    tool_name, tool_class, seq, digest_hex AS digest, record
FROM messages FINAL
SETTINGS do_not_merge_across_partitions_select_final = 0;
