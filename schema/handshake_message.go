package schema

import (
	"encoding/json"
	"fmt"
	"time"
)

// EncodeHandshake returns the bytes to send. The error is a *Refusal where the message exceeds
// MaxHandshakeBytes.
func EncodeHandshake(m Handshake) ([]byte, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write a %s: %w", m.Type(), err)
	}
	if len(raw) > MaxHandshakeBytes {
		return nil, refuse(ReasonTooLarge, "a %s of %d bytes, a handshake message may have %d", m.Type(), len(raw), MaxHandshakeBytes)
	}
	return raw, nil
}

// Type returns alignment_card_request.
func (*CardRequest) Type() MessageType { return MessageCardRequest }

// Type returns alignment_card_response.
func (*CardResponse) Type() MessageType { return MessageCardResponse }

// Type returns value_coherence_check.
func (*CoherenceCheck) Type() MessageType { return MessageCoherenceCheck }

// Type returns coherence_result.
func (*CoherenceResult) Type() MessageType { return MessageCoherenceResult }

// ID returns the request_id.
func (m *CardRequest) ID() string { return m.RequestID }

// ID returns the request_id.
func (m *CardResponse) ID() string { return m.RequestID }

// ID returns the request_id.
func (m *CoherenceCheck) ID() string { return m.RequestID }

// ID returns the request_id.
func (m *CoherenceResult) ID() string { return m.RequestID }

// Time returns the timestamp.
func (m *CardRequest) Time() time.Time { return m.Timestamp }

// Time returns the timestamp.
func (m *CardResponse) Time() time.Time { return m.Timestamp }

// Time returns the timestamp.
func (m *CoherenceCheck) Time() time.Time { return m.Timestamp }

// Time returns the timestamp.
func (m *CoherenceResult) Time() time.Time { return m.Timestamp }

// Signed returns the message.
func (m *CardRequest) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }

// Signed returns the card: a response signs that (AAP section 6.3.2).
func (m *CardResponse) Signed() ([]byte, *Signature) { return m.AlignmentCard, m.Signature }

// Signed returns the message.
func (m *CoherenceCheck) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }

// Signed returns the message.
func (m *CoherenceResult) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }

// MarshalJSON writes message_type first and the time with Z.
func (m CardRequest) MarshalJSON() ([]byte, error) {
	type plain CardRequest
	m.Timestamp = m.Timestamp.UTC()
	return json.Marshal(struct {
		Type MessageType `json:"message_type"`
		plain
	}{m.Type(), plain(m)})
}

// MarshalJSON writes message_type first and the time with Z.
func (m CardResponse) MarshalJSON() ([]byte, error) {
	type plain CardResponse
	m.Timestamp = m.Timestamp.UTC()
	return json.Marshal(struct {
		Type MessageType `json:"message_type"`
		plain
	}{m.Type(), plain(m)})
}

// MarshalJSON writes message_type first and the time with Z.
func (m CoherenceCheck) MarshalJSON() ([]byte, error) {
	type plain CoherenceCheck
	m.Timestamp = m.Timestamp.UTC()
	return json.Marshal(struct {
		Type MessageType `json:"message_type"`
		plain
	}{m.Type(), plain(m)})
}

// MarshalJSON writes message_type first and the time with Z.
func (m CoherenceResult) MarshalJSON() ([]byte, error) {
	type plain CoherenceResult
	m.Timestamp = m.Timestamp.UTC()
	return json.Marshal(struct {
		Type MessageType `json:"message_type"`
		plain
	}{m.Type(), plain(m)})
}

// MarshalJSON writes one value as a string, several as an array.
func (c Concession) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return json.Marshal(c[0])
	}
	return json.Marshal([]string(c))
}
