-- +goose Up
-- The same (agent_id, trace_id) with several contents: each is kept, judged and
-- sealed, and stands here. The first of digests arrived first.
CREATE OR REPLACE VIEW conflicts AS
SELECT
    tenant, agent_id, trace_id,
    arrayMap(p -> p.2, arraySort(groupArray((stream_sequence, lower(hex(digest)))))) AS digests,
    min(received_at) AS first_received,
    max(received_at) AS last_received
FROM traces FINAL
GROUP BY tenant, agent_id, trace_id
HAVING count() > 1
SETTINGS do_not_merge_across_partitions_select_final = 0;
