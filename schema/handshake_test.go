package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const signatureBlock = `{"algorithm":"Ed25519","value":"` +
	`AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==","key_id":"k1"}`

// The four messages of AAP section 6.3 with every member of that section, and the
// task_result of section 3.2.
var handshakeMessages = map[MessageType]string{
	MessageCardRequest: `{"message_type":"alignment_card_request","request_id":"r1",` +
		`"requester":{"agent_id":"did:web:a.example","card_id":"ac-a"},` +
		`"task_context":{"task_type":"compare","values_required":["honesty","privacy"],"data_categories":["prices"]},` +
		`"timestamp":"2026-02-01T09:00:00Z","signature":` + signatureBlock + `}`,
	MessageCardResponse: `{"message_type":"alignment_card_response","request_id":"r1","alignment_card":%s,"signed_by":"agent",` +
		`"signature":` + signatureBlock + `,"timestamp":"2026-02-01T09:00:01Z"}`,
	MessageCoherenceCheck: `{"message_type":"value_coherence_check","request_id":"r1","initiator_card_id":"ac-a","responder_card_id":"ac-1",` +
		`"proposed_collaboration":{"task_type":"compare","values_intersection":["honesty"],` +
		`"data_sharing":{"from_initiator":["criteria"],"from_responder":["catalog"]},` +
		`"autonomy_scope":{"initiator_actions":["search"],"responder_actions":["answer"]},` +
		`"modified_values":{"responder_concession":"analytics"}},"timestamp":"2026-02-01T09:00:02.5Z"}`,
	MessageCoherenceResult: `{"message_type":"coherence_result","request_id":"r1","coherence":{"compatible":false,"score":0.45,` +
		`"value_alignment":{"matched":["honesty"],"unmatched":["thrift"],"conflicts":[{"initiator_value":"thrift","responder_value":"analytics",` +
		`"conflict_type":"incompatible","description":"d","refused_by":"initiator"}]}},"proceed":false,"conditions":["c"],` +
		`"proposed_resolution":{"type":"escalate_to_principals","reason":"r","alternative":{"type":"modified_scope","description":"d",` +
		`"modified_values":{"initiator_concession":["x","y"],"responder_concession":"analytics"},` +
		`"autonomy_scope":{"initiator_actions":["search"]},"data_sharing":{"from_responder":["catalog"]}},` +
		`"escalation_contacts":[{"side":"initiator","agent_id":"a","escalation_contact":"mailto:u@example.com"}]},` +
		`"reasons":[{"code":"value_conflict","description":"d"}],` +
		`"resolution_steps":[{"step":"automatic","subject":"analytics","side":"responder","outcome":"failed","reason":"r"}],` +
		`"coherence_metadata":{"engine_version":"e","profile":"spec","min_coherence":0.7,"required_from":"union",` +
		`"initiator_card_digest":"` + strings.Replace(someDigest, "ff", "fe", 1) + `","responder_card_digest":"` + someDigest + `","assessed_at":"2026-02-01T09:00:03Z"},` +
		`"timestamp":"2026-02-01T09:00:03Z","signed_by":"service"}`,
	MessageTaskResult: `{"message_type":"task_result","request_id":"r1","responder":{"agent_id":"did:web:b.example","card_id":"ac-1"},` +
		`"status":"completed","result":{"cheapest":[3,null]},"trace_reference":{"trace_ids":["tr-1","tr-2"],"session_id":"s"},` +
		`"timestamp":"2026-02-01T09:05:00Z","signature":` + signatureBlock + `}`,
}

const someDigest = "00000000000000000000000000000000000000000000000000000000000000ff"

// handshakeMessage returns a message of a kind, as compact JSON.
func handshakeMessage(t *testing.T, kind MessageType) string {
	t.Helper()
	if kind != MessageCardResponse {
		return handshakeMessages[kind]
	}
	compact, err := json.Marshal(json.RawMessage(goodCard))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(handshakeMessages[kind], compact)
}

// Decoding and encoding a message returns the same message: nothing is lost.
func TestHandshakeMessagesRoundTrip(t *testing.T) {
	for _, kind := range messageTypes {
		text := handshakeMessage(t, kind)
		m, err := DecodeHandshake([]byte(" \n" + text + "\t"))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		again, err := EncodeHandshake(m)
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != text {
			t.Errorf("%s is read back as\n%s\nwant\n%s", kind, again, text)
		}
		object, signature := m.Signed()
		if m.Type() != kind || m.ID() != "r1" || m.Time().Location() != time.UTC || object == nil || (signature != nil) != strings.Contains(text, "Ed25519") {
			t.Errorf("%s: type %s, id %s, time %s, signature %v", kind, m.Type(), m.ID(), m.Time(), signature)
		}
		if wantCard := kind == MessageCardResponse; strings.HasPrefix(string(object), `{"aap_version"`) != wantCard {
			t.Errorf("%s signs %.40s", kind, object)
		}
	}
}

// Members may come in any order. Unknown members are ignored. Times are written in UTC whatever
// their zone was. Optional members may be null.
func TestHandshakeDecodingIgnoresUnknownMembersAndNulls(t *testing.T) {
	m, err := DecodeHandshake([]byte(`{"timestamp":"2026-02-01T11:00:00+02:00","x":[{"y":null}],"task_context":null,"signature":null,
		"requester":{"card_id":"c","agent_id":"a","z":1},"request_id":"r","message_type":"alignment_card_request"}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"message_type":"alignment_card_request","request_id":"r","requester":{"agent_id":"a","card_id":"c"},"timestamp":"2026-02-01T09:00:00Z"}`
	if got, err := EncodeHandshake(m); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	m, err = DecodeHandshake([]byte(`{"message_type":"coherence_result","request_id":"r","timestamp":"2026-02-01T09:00:00Z",
		"coherence":{"compatible":true,"score":1,"value_alignment":{}},"proceed":true,"conditions":null,"proposed_resolution":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := EncodeHandshake(m); err != nil || !strings.Contains(string(got), `{"matched":[],"unmatched":[],"conflicts":[]}`) ||
		!strings.Contains(string(got), `"conditions":[],"reasons":[],"resolution_steps":[]`) {
		t.Errorf("%s, %v", got, err)
	}
}

// Plumbline writes its messages with Z, whatever the zone of the clock.
func TestOwnMessagesAreWrittenInUTC(t *testing.T) {
	at := time.Date(2026, 2, 1, 11, 0, 0, 0, time.FixedZone("", 7200))
	for _, m := range []Handshake{
		&CardRequest{Timestamp: at}, &CardResponse{Timestamp: at, AlignmentCard: []byte("{}")}, &CoherenceCheck{Timestamp: at}, &CoherenceResult{Timestamp: at}, &TaskResult{Timestamp: at},
	} {
		if raw, err := EncodeHandshake(m); err != nil || !strings.Contains(string(raw), `"timestamp":"2026-02-01T09:00:00Z"`) {
			t.Errorf("%s, %v", raw, err)
		}
	}
	var refusal *Refusal
	if _, err := EncodeHandshake(&CoherenceResult{RequestID: strings.Repeat("x", MaxHandshakeBytes)}); !errors.As(err, &refusal) || refusal.Reason != ReasonTooLarge {
		t.Errorf("a message too large: %v", err)
	}
}

// All faults are reported at once, each at its place.
func TestHandshakeRefusals(t *testing.T) {
	names := func(n int) string { return `["` + strings.Repeat(`x","`, n-1) + `x"]` }
	for _, c := range []struct{ name, message, want string }{
		{"nothing", ``, "invalid_json: EOF"},
		{"no object", `[]`, "invalid_handshake: want an object, found an array"},
		{"empty", `{}`, "invalid_handshake: /message_type: is missing (required); /request_id: is missing (required); /timestamp: is missing (required)"},
		{"unknown type", `{"message_type":"hello","request_id":"","timestamp":"now"}`,
			`invalid_handshake: /message_type: "hello" is none of alignment_card_request, alignment_card_response, value_coherence_check, coherence_result, task_result; ` +
				`/request_id: must not be empty; /timestamp: "now" is not an RFC 3339 time with a zone, such as 2026-01-31T12:30:00Z`},
		{"a type that is not a string", `{"message_type":7,"request_id":"r","timestamp":"2026-02-01T09:00:00Z"}`, "invalid_handshake: /message_type: want a string, found a number; /message_type: \"\" is none of alignment_card_request, alignment_card_response, value_coherence_check, coherence_result, task_result"},
		{"no zone", `{"message_type":"alignment_card_request","request_id":"r","timestamp":"2026-02-01T09:00:00","requester":{"agent_id":"a"}}`,
			`invalid_handshake: /timestamp: "2026-02-01T09:00:00" is not an RFC 3339 time with a zone, such as 2026-01-31T12:30:00Z; /requester/card_id: is missing (required)`},
		{"twice the same member", `{"message_type":"alignment_card_request","request_id":"r","request_id":"s"}`, `invalid_json: /request_id: duplicate object member name`},
		{"task without type", handshakeMessages[MessageCardRequest][:strings.Index(handshakeMessages[MessageCardRequest], `"task_type"`)] + `"values_required":["",7]}}`,
			`invalid_handshake: /task_context/values_required/0: must not be empty; /task_context/values_required/1: want a string, found a number; /task_context/task_type: is missing (required); /timestamp: is missing (required)`},
		{"a card with faults", `{"message_type":"alignment_card_response","request_id":"r","timestamp":"2026-02-01T09:00:00Z","alignment_card":{"card_id":""}}`,
			`invalid_handshake: /alignment_card/card_id: must not be empty; /alignment_card/agent_id: is missing (required); /alignment_card/issued_at: is missing (required); ` +
				`/alignment_card/principal: is missing (required); /alignment_card/values: is missing (required); /alignment_card/aap_version: is missing (required); ` +
				`/alignment_card/autonomy_envelope: is missing (required); /alignment_card/audit_commitment: is missing (required)`},
		{"a malformed signature", `{"message_type":"alignment_card_request","request_id":"r","timestamp":"2026-02-01T09:00:00Z","requester":{"agent_id":"a","card_id":"c"},"signature":{"algorithm":"none"}}`,
			`invalid_handshake: /signature/algorithm: "none" is none of Ed25519; /signature/value: is missing (required); /signature/key_id: is missing (required)`},
		{"too many names", `{"message_type":"value_coherence_check","request_id":"r","timestamp":"2026-02-01T09:00:00Z","initiator_card_id":"a","responder_card_id":"b",` +
			`"proposed_collaboration":{"task_type":"t","values_intersection":` + names(MaxHandshakeNames+1) + `,"autonomy_scope":{"responder_actions":` + names(MaxScopeActions+1) + `},"modified_values":{"initiator_concession":7}}}`,
			`invalid_handshake: /proposed_collaboration/values_intersection: 1025 names, at most 1024 are allowed; ` +
				`/proposed_collaboration/autonomy_scope/responder_actions: 257 names, at most 256 are allowed; ` +
				`/proposed_collaboration/modified_values/initiator_concession: want an array of strings, found a number`},
		{"a result against itself", `{"message_type":"coherence_result","request_id":"r","timestamp":"2026-02-01T09:00:00Z","coherence":{"compatible":false,"score":1.5,"value_alignment":{}},"proceed":true}`,
			`invalid_handshake: /coherence/score: 1.5 is outside 0..1; /proceed: must not be true of agents that are not compatible`},
		{"a result of a task without traces", `{"message_type":"task_result","request_id":"r","timestamp":"2026-02-01T09:00:00Z","responder":{"agent_id":"a"},"status":"done","trace_reference":{"trace_ids":[]}}`,
			`invalid_handshake: /responder/card_id: is missing (required); /status: "done" is none of completed, failed, declined; /trace_reference/trace_ids: 0 traces, want 1 to 1024`},
		{"a type behind other texts", `{"request_id":"message_type","message_type":"alignment_card_request","timestamp":"2026-02-01T09:00:00Z","requester":{"agent_id":"a"}}`,
			`invalid_handshake: /requester/card_id: is missing (required)`},
		{"digests that are none", `{"message_type":"coherence_result","request_id":"r","timestamp":"2026-02-01T09:00:00Z","coherence":{"compatible":false,"score":0,"value_alignment":{}},"proceed":false,` +
			`"coherence_metadata":{"initiator_card_digest":7,"responder_card_digest":"ff"}}`,
			`invalid_handshake: /coherence_metadata/initiator_card_digest: want a string, found a number; /coherence_metadata/responder_card_digest: digest: 2 characters, want 64 hexadecimal digits`},
		{"more after it", `{"message_type":"alignment_card_request","request_id":"r","timestamp":"2026-02-01T09:00:00Z","requester":{"agent_id":"a","card_id":"c"}} {}`,
			`invalid_handshake: unexpected text after the record (byte 136)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeHandshake([]byte(c.message))
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("error %v", err)
			}
			if got := err.Error(); got != c.want && !strings.HasPrefix(got, c.want+" ") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	large := `{"message_type":"` + strings.Repeat("x", MaxHandshakeBytes) + `"}`
	if _, err := DecodeHandshake([]byte(large)); err == nil || !strings.HasPrefix(err.Error(), "too_large: ") {
		t.Errorf("a message too large: %v", err)
	}
}

// Each message follows the previous one, under one request_id.
func TestFollows(t *testing.T) {
	request, check, result := &CardRequest{RequestID: "r"}, &CoherenceCheck{RequestID: "r", ResponderCardID: "ac-1"}, &CoherenceResult{RequestID: "r"}
	response := &CardResponse{RequestID: "r", Card: &Card{CardID: "ac-1"}}
	task := &TaskResult{RequestID: "r"}
	for _, pair := range [][2]Handshake{{request, response}, {response, check}, {check, result}, {result, task}} {
		if err := Follows(pair[0], pair[1]); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		previous, next Handshake
		want           error
	}{
		"another request":  {request, &CardResponse{RequestID: "s"}, ErrForeignRequest},
		"a step left out":  {request, check, ErrOutOfOrder},
		"backwards":        {response, request, ErrOutOfOrder},
		"twice the same":   {check, check, ErrOutOfOrder},
		"past the end":     {task, request, ErrOutOfOrder},
		"no result before": {check, task, ErrOutOfOrder},
		"of another card":  {response, &CoherenceCheck{RequestID: "r", ResponderCardID: "ac-2"}, ErrOtherCard},
		"nothing to match": {&CardRequest{}, &CoherenceResult{}, ErrOutOfOrder},
	} {
		if err := Follows(c.previous, c.next); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every decoded message is encoded as a message that decodes to the same.
func FuzzDecodeHandshake(f *testing.F) {
	for _, text := range handshakeMessages {
		f.Add([]byte(strings.Replace(text, "%s", unifiedCard, 1)))
	}
	f.Add([]byte(`{"message_type":"coherence_result","request_id":"r","timestamp":"2026-02-01T09:00:00Z","proceed":false,` +
		`"coherence":{"compatible":false,"score":0,"value_alignment":{}},"coherence_metadata":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := DecodeHandshake(raw)
		if err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) || len(refusal.Faults) == 0 {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		once, err := EncodeHandshake(m)
		if err != nil {
			return // escapes may make a message longer than the received one
		}
		again, err := DecodeHandshake(once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if twice, err := EncodeHandshake(again); err != nil || string(twice) != string(once) {
			t.Fatalf("%v\n%s\n%s", err, once, twice)
		}
	})
}
