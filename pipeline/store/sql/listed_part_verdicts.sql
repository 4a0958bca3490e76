WHERE tenant = {tenant:String}
  AND session_id IN {sessions:Array(String)}
  AND (agent_id, session_id) IN (
      SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({agents:Array(String)}, {sessions:Array(String)})) AS pair))
ORDER BY verified_at
