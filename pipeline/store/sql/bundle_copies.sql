SELECT tenant, destination, path, sha256, bytes, delivered_at
FROM bundle_copies FINAL
WHERE tenant = {tenant:String}
  AND sha256 = unhex({sha256:String})
ORDER BY destination, path
