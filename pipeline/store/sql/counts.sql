SELECT
    (SELECT count() FROM traces FINAL WHERE tenant = {tenant:String}) AS traces,
    (SELECT count() FROM traces WHERE tenant = {tenant:String}) AS trace_rows,
    (SELECT count() FROM conflicts WHERE tenant = {tenant:String}) AS conflicts,
    (SELECT count() FROM current_verdicts WHERE tenant = {tenant:String}) AS verdicts,
    (SELECT countIf(status = 'card_unknown') FROM current_verdicts WHERE tenant = {tenant:String}) AS card_unknown,
    (SELECT count() FROM drift_points FINAL WHERE tenant = {tenant:String}) AS drift_points,
    (SELECT uniqExact(agent_id, alert_id) FROM drift_alerts WHERE tenant = {tenant:String}) AS drift_alerts,
    (SELECT count() FROM bundles FINAL WHERE tenant = {tenant:String}) AS bundles,
    (SELECT count() FROM dead_letters FINAL WHERE tenant = {tenant:String}) AS dead_letters
