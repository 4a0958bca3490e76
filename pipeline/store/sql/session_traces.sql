PREWHERE tenant = {tenant:String}
  AND event_hour BETWEEN {from:UInt32} AND {to:UInt32}
  AND agent_id IN {agents:Array(String)}
  AND session_id IN {sessions:Array(String)}
  AND (agent_id, session_id) IN (
      SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({agents:Array(String)}, {sessions:Array(String)})) AS pair))
SETTINGS use_skip_indexes_if_final_exact_mode = 0, -- copies of a record have the same session
         max_block_size = 128, -- a block of usual records fits into the memory that a column of records begins with (package database)
         enable_vertical_final = 0 -- otherwise each block has all rows of a granule
