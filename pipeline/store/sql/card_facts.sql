SELECT DISTINCT agent_id, card_id, retention_days, declared_values, bounded_actions, forbidden_actions, escalation_triggers.condition AS conditions
FROM cards
WHERE tenant = {tenant:String} AND agent_id IN {agents:Array(String)}
SETTINGS select_sequential_consistency = 1
