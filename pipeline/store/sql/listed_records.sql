PREWHERE tenant = {tenant:String}
  AND event_hour IN {hours:Array(UInt32)}
  AND digest IN (SELECT toFixedString(unhex(arrayJoin({digests:Array(String)})), 32))
