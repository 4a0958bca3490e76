PREWHERE tenant = {tenant:String}
  AND event_hour BETWEEN {from:UInt32} AND {to:UInt32}
  AND agent_id = {agent:String} AND session_id = {session:String}
  AND trace_digest IN (
      SELECT digest FROM traces FINAL
      PREWHERE tenant = {tenant:String}
        AND event_hour BETWEEN {from:UInt32} AND {to:UInt32}
        AND agent_id = {agent:String} AND session_id = {session:String}
      WHERE stream_sequence > {after:UInt64} AND stream_sequence <= {cut:UInt64}
        AND ({created:Int64} = 0 OR stream_created = fromUnixTimestamp64Nano({created:Int64}, 'UTC'))
      UNION ALL SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
