SELECT DISTINCT tenant, baseline_id AS id
FROM drift_baselines
WHERE tenant = {tenant:String}
  AND baseline_id IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
