-- Traces whose card nobody has registered. Where it was registered later, they are judged by then or soon.
SELECT count() AS traces, uniq(agent_id) AS agents, arraySort(groupUniqArray(5)(agent_id)) AS some
FROM verdicts
PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC') AND status = 'card_unknown'
WHERE tenant = {tenant:String} AND $agents AND card_id GLOBAL NOT IN (SELECT card_id FROM cards WHERE tenant = {tenant:String})
