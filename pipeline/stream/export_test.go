package stream

// EncodeReceipts is encodeReceipts, for property tests with small bodies.
var EncodeReceipts = encodeReceipts

// ParseReply reads a delivery's reply subject.
func ParseReply(reply string) (delivered, sequence uint64, timestamp int64, err error) {
	m, err := parseReply(reply)
	return m.delivered, m.sequence, m.timestamp, err
}
