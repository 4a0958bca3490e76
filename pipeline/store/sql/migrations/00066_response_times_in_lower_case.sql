-- +goose Up
-- A trace may write the time of a response with t and z in lower case (RFC 3339),
-- which ClickHouse reads in upper case only. The column is computed when it is
-- read: traces stored before have their time from now on.
ALTER TABLE traces
    MODIFY COLUMN response_time Nullable(DateTime64(9, 'UTC')) ALIAS parseDateTime64BestEffortOrNull(upper(JSONExtractString(raw, 'escalation', 'principal_response', 'timestamp')), 9, 'UTC');
