SELECT type, groupUniqArray(trace_id) FROM violations WHERE tenant = {tenant:String} GROUP BY type ORDER BY type
