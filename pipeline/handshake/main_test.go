package handshake_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, brokertest.LeftBehind()...) }

// noon is the time of the handshakes in these tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var key = fixedKey{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))}

// fixedKey is a signer whose key is not rotated.
type fixedKey struct{ private ed25519.PrivateKey }

func (k fixedKey) Keys() []keyring.Key {
	public := k.private.Public().(ed25519.PublicKey)
	return []keyring.Key{{KeyID: aivs.KeyID(public), PublicKey: hex.EncodeToString(public), Purpose: keyring.Handshake}}
}

func (k fixedKey) Current(time.Time) (*keystore.Opened, error) {
	return &keystore.Opened{Private: k.private, Entry: k.Keys()[0]}, nil
}

// rig is a broker and a registry with the cards of the agents a and b. Each has the card
// <agent>-now in force and the card <agent>-old, which has expired.
type rig struct {
	t        *testing.T
	broker   *brokertest.Server
	client   *stream.Client
	registry *cards.Registry
	peers    *handshake.Peers
	looks    atomic.Int64 // reads of stored requests
}

// looking counts the reads of stored requests.
type looking struct {
	*stream.Bucket
	at *atomic.Int64
}

func (l looking) Matching(ctx context.Context, pattern string, most int) (values [][]byte, err error) {
	values, err = l.Bucket.Matching(ctx, pattern, most)
	l.at.Add(int64(len(values)))
	return values, err
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, broker: brokertest.New(t)}
	r.client = r.broker.Connect()
	if err := r.client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.registry = r.open(r.client)
	for _, agent := range []string{"a", "b"} {
		r.register(card(agent, agent+"-old", "2026-01-01", `,"expires_at":"2026-02-01T00:00:00Z"`, "honesty"))
		r.register(card(agent, agent+"-now", "2026-03-01", "", "honesty", "transparency"))
	}
	return r
}

func (r *rig) open(client *stream.Client) *cards.Registry {
	r.t.Helper()
	registry, err := cards.Open(r.t.Context(), client, config.DefaultCardCacheBytes)
	if err != nil {
		r.t.Fatal(err)
	}
	return registry
}

// card returns a valid card that declares values.
func card(agent, id, issued, members string, declared ...string) []byte {
	values, err := json.Marshal(declared)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return fmt.Appendf(nil, `{"aap_version":"0.1.0","card_id":%q,"agent_id":%q,"issued_at":"%sT00:00:00Z",`+
		`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":%s},`+
		`"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[]},`+
		`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}%s}`, id, agent, issued, values, members)
}

func (r *rig) register(raw []byte) *cards.Card {
	r.t.Helper()
	card, _, err := r.registry.Put(r.t.Context(), raw)
	if err != nil {
		r.t.Fatal(err)
	}
	return card
}

// service returns a service as in another process, with its own connection.
func (r *rig) service(results ...handshake.Results) *handshake.Service {
	r.t.Helper()
	client := r.broker.Connect()
	memory, err := client.Bucket(r.t.Context(), stream.Handshakes)
	if err != nil {
		r.t.Fatal(err)
	}
	parts := handshake.Parts{
		Cards: r.registry, Memory: looking{memory, &r.looks}, Results: client, Signer: key,
		Now: func() time.Time { return noon }, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Peers: r.peers,
		Thresholds: aap.DefaultThresholds(),
	}
	if len(results) > 0 {
		parts.Results = results[0]
	}
	service, err := handshake.New(parts)
	if err != nil {
		r.t.Fatal(err)
	}
	return service
}

// request and check return messages of agent a. Tests may change them.
func request(id string, change ...func(*schema.CardRequest)) []byte {
	m := &schema.CardRequest{
		RequestID: id, Requester: schema.Requester{AgentID: "a", CardID: "a-now"}, Timestamp: noon,
		TaskContext: &schema.TaskContext{TaskType: "compare", ValuesRequired: []string{"honesty", "transparency"}},
	}
	for _, alter := range change {
		alter(m)
	}
	return text(m)
}

func check(id string, change ...func(*schema.CoherenceCheck)) []byte {
	m := &schema.CoherenceCheck{
		RequestID: id, InitiatorCardID: "a-now", ResponderCardID: "b-now", Timestamp: noon,
		Proposal: schema.Collaboration{TaskType: "compare"},
	}
	for _, alter := range change {
		alter(m)
	}
	return text(m)
}

func text(m schema.Handshake) []byte {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // messages can always be encoded
	}
	return raw
}

// from returns a message to agent b from a sender that may speak for an agent.
func from(agent string, raw []byte) handshake.Question {
	return handshake.Question{
		Responder: "b", Transport: handshake.OverHTTP, Raw: raw,
		Speaks: func(other string) bool { return other == agent },
	}
}

// answered checks that the answer has a type, and returns it.
func answered[M schema.Handshake](t *testing.T, service *handshake.Service, q handshake.Question) M {
	t.Helper()
	raw, err := service.Answer(t.Context(), q)
	if err != nil {
		t.Fatalf("%s\n%v", q.Raw, err)
	}
	decoded, err := schema.DecodeHandshake(raw)
	if err != nil {
		t.Fatalf("%s\n%v", raw, err)
	}
	m, ok := decoded.(M)
	if !ok {
		t.Fatalf("answered with a %s", decoded.Type())
	}
	return m
}

// refused checks that the answer is a problem with a word and a code, and returns its message.
func refused(t *testing.T, service *handshake.Service, q handshake.Question, word string, code int) (message string) {
	t.Helper()
	raw, err := service.Answer(t.Context(), q)
	p := handshake.ProblemOf(err)
	if p == nil || p.Word != word || p.Code != code || p.Message == "" {
		t.Errorf("%s\nanswered %s, error %v %+v; want the problem %s, %d", q.Raw, raw, err, p, word, code)
		return ""
	}
	return p.Message
}

// records returns the content of stream COHERENCE.
func (r *rig) records() (records []*handshake.Record) {
	r.t.Helper()
	state, err := r.client.StreamState(r.t.Context(), stream.Coherence)
	if err != nil {
		r.t.Fatal(err)
	}
	reader, err := r.client.OpenConsumer(r.t.Context(), stream.ConsumerConfig{Stream: stream.Coherence})
	if err != nil {
		r.t.Fatal(err)
	}
	defer reader.Close()
	messages, err := reader.Fetch(r.t.Context(), nil, int(state.Messages), 0, time.Minute)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range messages {
		record, _, err := handshake.ReadRecord(m.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		records = append(records, record)
	}
	return records
}

// failing is a broker that accepts no results.
type failing struct{ err error }

func (f failing) PublishCoherence(context.Context, wire.CoherenceResult) error { return f.err }

var errBroken = errors.New("broken")
