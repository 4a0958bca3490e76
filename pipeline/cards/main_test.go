package cards_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker connects to a broker that belongs to the test.
func broker(t *testing.T) *stream.Client {
	t.Helper()
	client := brokertest.New(t).Connect()
	if err := client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

// open returns a registry in the state of a process that has just started.
func open(t *testing.T, client *stream.Client) *cards.Registry {
	t.Helper()
	registry, err := cards.Open(t.Context(), client, config.DefaultCardCacheBytes)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// card returns a valid card, issued in the given month of 2026, with a retention of days.
func card(agent, id string, month, days int, members ...string) []byte {
	more := ""
	for _, m := range members {
		more += "," + m
	}
	return fmt.Appendf(nil, `{"aap_version":"0.1.0","card_id":%q,"agent_id":%q,"issued_at":"2026-%02d-01T00:00:00Z",`+
		`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":["honesty"]},`+
		`"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[]},`+
		`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":%d,"queryable":false}%s}`, id, agent, month, days, more)
}

// put registers a new and valid card.
func put(t *testing.T, registry *cards.Registry, raw []byte) *cards.Card {
	t.Helper()
	card, created, err := registry.Put(t.Context(), raw)
	if err != nil || !created {
		t.Fatalf("created %v, error %v", created, err)
	}
	return card
}
