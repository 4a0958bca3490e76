SELECT card_id, issued_at, expires_at, registered_at, revoked_at, revocation_reason, raw
FROM visible_cards
WHERE tenant = {tenant:String} AND agent_id = {agent:String}
ORDER BY issued_at DESC, registered_at DESC, card_id
LIMIT {limit:UInt64}
