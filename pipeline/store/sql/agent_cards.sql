SELECT card_id, raw
FROM cards FINAL
WHERE tenant = {tenant:String} AND card_id IN (
    SELECT DISTINCT card_id
    FROM traces
    WHERE tenant = {tenant:String} AND agent_id = {agent:String})
