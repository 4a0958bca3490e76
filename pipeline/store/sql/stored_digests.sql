SELECT DISTINCT {column:Identifier} AS digest
FROM {table:Identifier}
PREWHERE tenant = {tenant:String}
  AND {column:Identifier} IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
