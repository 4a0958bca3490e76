SELECT count() FROM system.processes WHERE startsWith(initial_query_id, {prefix:String})
