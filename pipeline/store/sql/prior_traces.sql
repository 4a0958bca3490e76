SELECT tenant, trace_id, agent_id, min(event_time) AS earliest
FROM traces
PREWHERE tenant = {tenant:String} AND trace_id IN {traces:Array(String)}
GROUP BY tenant, trace_id, agent_id
