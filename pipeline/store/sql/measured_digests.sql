SELECT DISTINCT trace_digest AS digest
FROM drift_points
PREWHERE tenant = {tenant:String}
  AND trace_digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
