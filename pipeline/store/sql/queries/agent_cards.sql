SELECT card_id, raw
FROM cards FINAL
WHERE tenant = {tenant:String} AND agent_id = {agent:String}
