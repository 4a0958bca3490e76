SELECT toStartOfMinute(received_at) AS at, count() AS traces
FROM traces
PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
WHERE tenant = {tenant:String}
  AND $agents
GROUP BY at
ORDER BY at
LIMIT 1500
