SELECT type, groupUniqArray(trace_id) FROM findings WHERE tenant = {tenant:String} GROUP BY type ORDER BY type
