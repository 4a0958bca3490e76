package schema

// DecodeHandshake reads and validates one message of the handshake (AAP section
// 6.3); its concrete type tells which. request_id and timestamp are required
// (section 9.4). The error is a *Refusal with every fault found, those of a
// card within the message included. Signatures and freshness are not checked
// here. The message keeps a copy of raw, which its strings alias.
func DecodeHandshake(raw []byte) (Handshake, error) {
	return nil, refuse(ReasonInvalidHandshake, "%d bytes", len(raw))
}
