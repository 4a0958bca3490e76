SELECT shard_num, shard_weight, replica_num, host_name, port, toUInt8(internal_replication) AS internal_replication
FROM system.clusters
WHERE cluster = {cluster:String}
ORDER BY shard_num, replica_num
