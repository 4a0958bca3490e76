SELECT DISTINCT alert_id AS digest
FROM drift_alerts
WHERE tenant = {tenant:String}
  AND alert_id IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
