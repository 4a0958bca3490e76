SELECT count() FROM seal_runs
