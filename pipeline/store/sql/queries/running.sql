SELECT count() FROM system.processes WHERE startsWith(query_id, {prefix:String})
