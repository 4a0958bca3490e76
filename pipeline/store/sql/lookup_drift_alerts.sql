SELECT DISTINCT alert_id, greatest(drift_alerts.revision, 1)::UInt32 AS revision
FROM drift_alerts
PREWHERE tenant = {tenant:String}
  AND alert_id IN (SELECT toFixedString(unhex(arrayJoin({alerts:Array(String)})), 32))
