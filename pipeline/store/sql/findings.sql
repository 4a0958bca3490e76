SELECT type, groupUniqArray(trace_id) AS traces FROM findings WHERE tenant = {tenant:String} GROUP BY type ORDER BY type
