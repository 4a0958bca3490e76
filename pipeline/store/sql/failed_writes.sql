SELECT sum(value), uptime() FROM system.events WHERE event = 'WriteBufferFromFileDescriptorWriteFailed'
