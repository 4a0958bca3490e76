SELECT type, groupUniqArray(trace_id) FROM warnings WHERE tenant = {tenant:String} GROUP BY type ORDER BY type
