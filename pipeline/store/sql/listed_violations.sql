OR digest IN (
      SELECT trace_digest
      FROM (
          SELECT trace_digest, violations.type AS types
          FROM verdicts FINAL
          PREWHERE tenant = {tenant:String}
            AND event_hour BETWEEN {from_hour:UInt32} AND {to_hour:UInt32}
            AND ({agent:String} = '' OR agent_id = {agent:String})
            AND (has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)}))
            AND ({session:String} = '' OR session_id = {session:String})
            AND ({trace:String} = '' OR trace_id = {trace:String})
          ORDER BY event_hour, tenant, agent_id, trace_id, trace_digest, status = 'judged' DESC, revoked_at DESC, verified_at DESC
          LIMIT 1 BY event_hour, tenant, agent_id, trace_id, trace_digest)
      WHERE if({violation:String} = 'any', notEmpty(types), has(types, {violation:String})))
