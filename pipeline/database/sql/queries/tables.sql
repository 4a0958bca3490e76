SELECT name, engine_full, storage_policy FROM system.tables WHERE database = currentDatabase()
