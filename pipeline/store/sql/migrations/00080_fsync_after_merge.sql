-- +goose Up
-- A merge replaces parts that were synced by one that was not: where the power is lost then,
-- rows are lost that an INSERT was answered for.
ALTER TABLE traces MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE verdicts MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE drift_points MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE drift_alerts MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE drift_state MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE drift_baselines MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE sessions MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE session_verdicts MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE bundles MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE bundle_copies MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE seal_runs MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE ledger MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE dead_letters MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE cards MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE revocations MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE coherence_results MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE task_results MODIFY SETTING min_rows_to_fsync_after_merge = 1;
ALTER TABLE messages MODIFY SETTING min_rows_to_fsync_after_merge = 1;
