WHERE tenant = {tenant:String}
  AND ({agent:String} = '' OR agent_id = {agent:String})
  AND ({session:String} = '' OR session_id = {session:String})
ORDER BY agent_id, session_id, part
