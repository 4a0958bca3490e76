package cards

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/schema"
)

// heap returns how many bytes of memory are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// near checks that the counted memory agrees with the heap within a quarter.
func near(t *testing.T, what string, counted, held int64, n int) {
	t.Helper()
	t.Logf("%s: %d counted, %d in the heap, each of %d", what, counted/int64(n), held/int64(n), n)
	if counted < held*3/4 || counted > held*5/4 {
		t.Errorf("%s: %d bytes are counted, the heap holds %d", what, counted, held)
	}
}

// hostile returns a card whose short conditions take much memory.
func hostile(i int) []byte {
	trigger := `{"condition":"` + strings.TrimSuffix(strings.Repeat("a or ", 15), " or ") + `","action":"log","reason":""},`
	return fmt.Appendf(nil, `{"aap_version":"0.1.0","card_id":"ac-%d","agent_id":"a","issued_at":"2026-01-01T00:00:00Z",`+
		`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":["honesty"]},`+
		`"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[%s]},`+
		`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`, i,
		strings.TrimSuffix(strings.Repeat(trigger, 100), ","))
}

func TestWeightIsWhatTheHeapHolds(t *testing.T) {
	var usual, odd [][]byte
	for _, card := range fleet.New(fleet.Config{Seed: 1, Agents: 1000, Traces: 1000, Start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}).Cards() {
		usual = append(usual, card.Raw)
	}
	for i := range 20 {
		odd = append(odd, hostile(i))
	}
	for what, raw := range map[string][][]byte{"cards of a fleet": usual, "hostile cards": odd} {
		compiled := make([]*aap.Compiled, len(raw))
		before := heap()
		for i := range raw {
			card, err := schema.DecodeCard(raw[i])
			if err != nil {
				t.Fatal(err)
			}
			compiled[i] = aap.Compile(card)
		}
		held, counted := heap()-before, int64(0)
		for i := range compiled {
			counted += weigh(compiled[i]) + weighRules(compiled[i]) - int64(len(raw[i])) // counted in both
		}
		near(t, what+", each with its rules", counted, held, len(raw))
		runtime.KeepAlive(compiled)
	}
}

// The cards of a fleet have few policies.
func TestCacheCountsSharedRulesOnce(t *testing.T) {
	const n = 2000
	fleets := fleet.New(fleet.Config{Seed: 1, Agents: n, Traces: n, Start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}).Cards()
	r := New(nil, nil, 1<<40)
	before := heap()
	for i := range fleets {
		card, err := schema.DecodeCard(fleets[i].Raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.keep(r.compile(card), uint64(i), true); err != nil {
			t.Fatal(err)
		}
	}
	index, cached := r.Bytes()
	near(t, "cache and index", index+cached, heap()-before, len(fleets))
	if policies := len(r.cache.rules); policies == 0 || policies > len(fleets)/10 {
		t.Errorf("%d cards have %d policies", len(fleets), policies)
	}
	r.cache.limit = 0
	for r.cache.queue.Len() > 0 {
		r.cache.evict(r.cache.queue.Front())
	}
	if r.cache.bytes != 0 || len(r.cache.rules) != 0 {
		t.Errorf("an empty cache has %d bytes and %d policies", r.cache.bytes, len(r.cache.rules))
	}
	runtime.KeepAlive(fleets)
}

func TestIndexIsCounted(t *testing.T) {
	const n = 20_000
	before := heap()
	r := New(nil, nil, 0)
	for i := range n {
		r.mu.Lock()
		_, err := r.note(&schema.Card{
			CardID: fmt.Sprintf("ac-0b54e6a1-%08d", i), AgentID: fmt.Sprintf("did:web:agent-%08d.shop.example", i),
			Version: "0.1.0", IssuedAt: time.Unix(int64(i), 0), Digest: schema.DigestOf(fmt.Append(nil, i)),
		}, uint64(i))
		r.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	index, _ := r.Bytes()
	near(t, "index", index, heap()-before, n)
	before = heap()
	for i := range n {
		r.noteRevocation(schema.Revocation{CardID: fmt.Sprintf("ac-0b54e6a1-%08d", i), AgentID: fmt.Sprintf("did:web:agent-%08d.shop.example", i),
			RevokedAt: time.Unix(int64(i), 0), Reason: fmt.Sprintf("the key of agent %d was lost", i)})
	}
	whole, _ := r.Bytes()
	near(t, "revocations", whole-index, heap()-before, n)
	runtime.KeepAlive(r)
}

func BenchmarkWeigh(b *testing.B) {
	card := fleet.New(fleet.Config{Seed: 1, Agents: 1, Traces: 1, Start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}).Cards()[0].Raw
	decoded, err := schema.DecodeCard(card)
	if err != nil {
		b.Fatal(err)
	}
	compiled := aap.Compile(decoded)
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := schema.DecodeCard(card); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			aap.Compile(decoded)
		}
	})
	b.Run("weigh", func(b *testing.B) {
		for b.Loop() {
			weigh(compiled)
			weighRules(compiled)
		}
	})
}
