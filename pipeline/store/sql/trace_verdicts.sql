PREWHERE tenant = {tenant:String} AND trace_id = {trace:String}
ORDER BY status = 'judged' DESC, revoked_at DESC, verified_at DESC
