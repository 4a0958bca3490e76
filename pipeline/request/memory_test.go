package request

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/auth"
)

// The requests of one token use at most its share of the memory. The requests of all tokens can
// use all of it. The rejection says which limit was reached.
func TestSharesOfMemory(t *testing.T) {
	m := newMemory(4 * MinShare)
	var held []*Holding
	for i := range 4 {
		h := m.hold(fmt.Sprintf("token %d", i))
		if p := h.Grow(t.Context(), MinShare); p != nil {
			t.Fatal(p)
		}
		held = append(held, h)
		soon, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer end()
		another := m.hold(h.owner)
		if p := another.Grow(soon, 1); p == nil || !strings.Contains(p.Error(), "the current requests of "+h.owner) || another.TryGrow(1) {
			t.Errorf("above the share of %s: %v", h.owner, p)
		}
		another.Release()
	}
	soon, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	last := m.hold("somebody")
	if p := last.Grow(soon, 1); p == nil || !strings.Contains(p.Error(), "all the memory") || last.TryGrow(1) {
		t.Errorf("above the limit of all: %v", p)
	}
	held[0].Release()
	if !last.TryGrow(MinShare) {
		t.Error("what was released is not free")
	}
	for _, h := range append(held[1:], last) {
		h.Release()
	}
	if len(m.shares) != 0 || !m.whole.TryAcquire(m.size) {
		t.Errorf("remaining shares: %v", m.shares)
	}
}

// Requests with a token use its share. Other requests use the share of their address.
func TestWhoseShare(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.jsonl")
	entry := fmt.Sprintf(`{"name":"entry-0","sha256":%q,"agents":["*"],"scopes":["traces:write"]}`, auth.Hash("secret"))
	if err := os.WriteFile(tokens, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"": "address 192.0.2.1", tokens: `token "entry-0"`} {
		log := slog.New(slog.DiscardHandler)
		keeper, err := auth.Open(file, "127.0.0.1:0", log)
		if err != nil {
			t.Fatal(err)
		}
		router := New(Config{Keeper: keeper, Memory: 4 * MinShare, Timeout: time.Minute, Log: log, Metrics: prometheus.NewRegistry()})
		var shares []string
		router.Route("POST /", auth.TracesWrite, func(_ http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
			held := router.Hold(r)
			defer held.Release()
			for owner := range router.memory.shares {
				shares = append(shares, owner)
			}
			return http.StatusOK, nil
		})
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer secret")
		router.Mux.ServeHTTP(httptest.NewRecorder(), r)
		if len(shares) != 1 || shares[0] != want {
			t.Errorf("the request uses the shares %q, want %q", shares, want)
		}
		if len(router.memory.shares) != 0 {
			t.Errorf("after the request, the shares are %v", router.memory.shares)
		}
	}
}
