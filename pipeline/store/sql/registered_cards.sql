SELECT DISTINCT agent_id, card_id, retention_days
FROM cards
WHERE tenant = {tenant:String} AND agent_id IN {agents:Array(String)}
SETTINGS select_sequential_consistency = 1
