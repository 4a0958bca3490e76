SELECT type, groupUniqArray(trace_id) AS traces FROM {view:Identifier} WHERE tenant = {tenant:String} GROUP BY type ORDER BY type
