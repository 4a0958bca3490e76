SELECT DISTINCT baseline_id AS digest
FROM drift_baselines
WHERE tenant = {tenant:String}
  AND baseline_id IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
