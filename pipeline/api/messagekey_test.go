package api

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// secretFirst returns a source of randomness whose first 32 bytes are known.
func secretFirst(secret []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(secret), iotest.OneByteReader(zeros{}))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// The key exists only in memory. It does not appear in answers, metrics, logs, profiles, the
// environment that a child would inherit, or anything that the broker stores.
func TestMessageKeyIsOnlyInMemory(t *testing.T) {
	secret := []byte("thirty-two bytes of a secret key")
	var shown bytes.Buffer
	logged := slog.New(slog.NewTextHandler(&shown, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := start(t, gateway(t), func(s *setup) { s.random, s.log = secretFirst(secret), logged })
	m := r.sign("ann", "shop", "check the weather")
	shown.WriteString(r.postJSON("/v1/messages/verify", "runtime", object{"agent_id": "shop", "session_id": "s", "wrapped": m.Wrapped, "envelope": m}).text)
	shown.WriteString(r.postJSON("/v1/tool-calls", "runtime", object{"agent_id": "shop", "session_id": "s", "message_id": m.ID, "tool_name": "pay"}).text)
	shown.WriteString(r.postJSON("/v1/tool-results", "runtime", object{"agent_id": "shop", "session_id": "s", "tool_name": "pay", "result": 1}).text)
	shown.WriteString(r.postJSON("/v1/messages", "ann", object{"agent_id": "shop", "session_id": "s", "text": m.KeyID, "intents": []string{"x"}}).text)
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/v1/limitations", "/v1/handshake/keys", "/v1/messages", "/debug/pprof/", "/debug/vars"} {
		shown.WriteString(r.send(http.MethodGet, path, nil).text)
	}
	for _, log := range []*slog.Logger{logged, slog.New(slog.NewJSONHandler(&shown, nil))} {
		log.Info("x", "service", r.api.messages, "inside", *r.api.messages)
	}
	for _, profile := range pprof.Profiles() {
		if err := profile.WriteTo(&shown, 2); err != nil {
			t.Fatal(err)
		}
	}
	shown.WriteString(strings.Join(os.Environ(), "\n"))
	records := 0
	for _, kept := range r.broker.Read(stream.MessageRecords, "", 5) {
		shown.Write(kept.Data)
		if stream.BucketKey(stream.Messages, &kept) != "" {
			records++
		}
	}
	if records != 5 || !strings.Contains(shown.String(), r.api.messages.KeyID()) {
		t.Errorf("%d records; the key's id is there: %v", records, strings.Contains(shown.String(), r.api.messages.KeyID()))
	}
	for name, form := range map[string]string{
		"raw": string(secret), "hexadecimal": hex.EncodeToString(secret), "base64": base64.RawStdEncoding.EncodeToString(secret)[:40],
		"as numbers": "116 104 105 114 116 121", "with commas": "116,104,105,114,116,121",
	} {
		if strings.Contains(strings.ToLower(shown.String()), strings.ToLower(form)) {
			t.Errorf("the key is exposed, %s", name)
		}
	}
}

// Each process has its own key, new at each start. A message signed by another process, or by an
// earlier one, gets unknown_key. Decisions are known to all processes.
func TestEachInstanceItsOwnKey(t *testing.T) {
	policies := gateway(t)
	one := start(t, policies)
	two := onBrokerOf(t, one, policies)
	if one.api.messages.KeyID() == two.api.messages.KeyID() {
		t.Fatal("two processes have one key")
	}
	m := one.sign("ann", "shop", "check the weather")
	rejected(t, two.verify("shop", "s", m.Wrapped, m), message.ReasonUnknownKey)
	posing := m
	posing.KeyID = two.api.messages.KeyID()
	rejected(t, two.verify("shop", "s", m.Wrapped, posing), message.ReasonForged)
	blocked(t, two.call("shop", "s", m.ID, "read_file"), message.ReasonNoMessage) // not verified by anyone yet
	one.accept(&m)
	executed(t, two.call("shop", "s", m.ID, "read_file"))
	blocked(t, two.call("shop", "s", m.ID, "send_email"), message.ReasonOutOfScope)
	rejected(t, one.verify("shop", "s", m.Wrapped, m), message.ReasonReplayed)
	relay := one.sign("agent-b", "shop", "send it", "send")
	decided[object](t, two.postJSON("/v1/messages", "ann", object{"agent_id": "shop", "session_id": "s", "text": "yes", "approves": relay.ID}), http.StatusCreated)
	one.accept(&relay)

	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	again := onBrokerOf(t, one, policies)
	rejected(t, again.verify("shop", "s", m.Wrapped, m), message.ReasonUnknownKey)
	executed(t, again.call("shop", "s", m.ID, "read_file"))
	for want := uint64(1); want <= 3; want++ { // numbers continue across processes
		r := []*rig{again, two, again}[want-1]
		got := decided[object](t, r.postJSON("/v1/tool-results", "runtime", object{"agent_id": "shop", "session_id": "s", "tool_name": "pay", "result": 1}), http.StatusCreated)
		if got["seq"] != float64(want) {
			t.Errorf("result %v, want %d", got["seq"], want)
		}
	}
}
