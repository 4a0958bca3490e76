package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/reload"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
	"github.com/plumbline/plumbline/schema"
)

func bearing(token string) string { return "Authorization: Bearer " + token }

func TestWhoMayDoWhat(t *testing.T) {
	r := start(t, withTokens(t,
		"shop did:web:shop,fleet-* traces:write",
		"registrar did:web:shop cards:write",
		"closer did:web:shop sessions:write"))
	routes := map[string]func(headers ...string) reply{
		"traces": func(headers ...string) reply { return r.post(body(trace("did:web:shop", "1")), headers...) },
		"cards": func(headers ...string) reply {
			return r.putCard("card-1", card("did:web:shop", "card-1"), headers...)
		},
		"sessions": func(headers ...string) reply { return r.endSession("did:web:shop", "s", headers...) },
	}
	for token, allowed := range map[string]string{"shop": "traces", "registrar": "cards", "closer": "sessions"} {
		for route, ask := range routes {
			answer := ask(bearing(token))
			switch {
			case route == allowed && answer.code >= 300:
				t.Errorf("%s to %s: %d %s", token, route, answer.code, answer.text)
			case route != allowed && (answer.code != http.StatusForbidden || answer.problem(t).Word != "scope"):
				t.Errorf("%s to %s: %d %s, want 403", token, route, answer.code, answer.text)
			}
		}
	}
	for name, headers := range map[string][]string{
		"no token": nil, "unknown token": {bearing("stolen")}, "other scheme": {"Authorization: Basic shop"}, "no scheme": {"Authorization: shop"},
	} {
		for route, ask := range routes {
			answer := ask(headers...)
			if answer.code != http.StatusUnauthorized || answer.problem(t).Word != "token" || answer.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s to %s: %d %s, want 401", name, route, answer.code, answer.text)
			}
			if strings.Contains(answer.text, "stolen") {
				t.Errorf("the answer repeats the token: %s", answer.text)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/limitations"} {
		if answer := r.send(http.MethodGet, path, nil); answer.code != http.StatusOK {
			t.Errorf("%s: %d without a token, want 200", path, answer.code)
		}
	}
}

func TestForeignAgent(t *testing.T) {
	r := start(t, withTokens(t, "shop did:web:shop traces:write", "fleet fleet-* traces:write,cards:write,sessions:write"))
	own, foreign := trace("did:web:shop", "1"), trace("did:web:bank", "2")
	answer := r.post(body(own, foreign, "{"), bearing("shop"))
	lines := answer.lines(t)
	if answer.code != http.StatusMultiStatus || lines[0].Status != "accepted" || lines[1].Status != "forbidden" || lines[2].Status != "refused" {
		t.Fatalf("%d %s", answer.code, answer.text)
	}
	if lines[1].TraceID != "2" || lines[1].Faults[0].Pointer != "/agent_id" {
		t.Errorf("outcome %+v", lines[1])
	}
	if answer = r.post(body(foreign), bearing("fleet")); answer.code != http.StatusForbidden {
		t.Errorf("forbidden alone: %d %s", answer.code, answer.text)
	}
	if answer = r.post(body(foreign, "{"), bearing("fleet")); answer.code != http.StatusBadRequest {
		t.Errorf("forbidden and refused: %d %s", answer.code, answer.text)
	}
	if answer = r.putCard("card-1", card("did:web:bank", "card-1"), bearing("fleet")); answer.code != http.StatusForbidden {
		t.Errorf("a foreign agent's card: %d %s", answer.code, answer.text)
	}
	if answer = r.endSession("did:web:bank", "s", bearing("fleet")); answer.code != http.StatusForbidden {
		t.Errorf("a foreign agent's session: %d %s", answer.code, answer.text)
	}
	r.stored(1)
	// The dead letters name the proven sender: a token of a single agent proves it.
	for _, letter := range r.letters(2) {
		if letter.Agent != "did:web:shop" {
			t.Errorf("dead letter of %q: %+v", letter.Agent, letter)
		}
		if foreign := letter.Reason == schema.ReasonForeignAgent; foreign == (string(letter.Data) == "{") {
			t.Errorf("dead letter %+v", letter)
		}
	}
}

func TestStartIsRefused(t *testing.T) {
	authority := transporttest.New(t)
	for name, c := range map[string]struct {
		alter func(*Config)
		want  string
	}{
		"open to the world":   {func(cfg *Config) { cfg.Listen = "0.0.0.0:0" }, "token file"},
		"token file missing":  {func(cfg *Config) { cfg.TokenFile = "nowhere" }, "nowhere"},
		"issuers missing":     {func(cfg *Config) { cfg.CardIssuerKeysFile = "nowhere" }, "card_issuer_keys_file: open nowhere"},
		"certificate missing": {func(cfg *Config) { cfg.TLSCertFile, cfg.TLSKeyFile = "nowhere", "nowhere" }, "tls_cert_file nowhere"},
		"authorities missing": {func(cfg *Config) { withFiles(cfg, authority, "nowhere") }, "tls_client_ca_file: open nowhere"},
		"no authorities":      {func(cfg *Config) { withFiles(cfg, authority, authority.KeyFile) }, "has no certificate in PEM"},
		"invalid address":     {func(cfg *Config) { cfg.Listen = "127.0.0.1:http-is-no-port" }, "listen for publishers"},
	} {
		cfg := Default()
		cfg.Listen = "127.0.0.1:0"
		c.alter(&cfg)
		env := service.NewEnv(stageName, "1", slog.New(slog.DiscardHandler), obs.NewRegistry("1"), new(obs.Health))
		err := Serve(t.Context(), &cfg, env, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
		if usage := c.want != "listen for publishers"; errors.Is(err, config.ErrUsage) != usage {
			t.Errorf("%s: %v, a fault of the configuration %v", name, err, usage)
		}
	}
}

// withFiles sets the files for HTTPS.
func withFiles(cfg *Config, authority *transporttest.Authority, clientCAs string) {
	cfg.TLSCertFile, cfg.TLSKeyFile, cfg.TLSClientCAFile = authority.CertFile, authority.KeyFile, clientCAs
}

func TestConfigurationIsCheckedWhole(t *testing.T) {
	cfg := Default()
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Errorf("the defaults: %v", faults)
	}
	cfg.Listen, cfg.TLSCertFile, cfg.MaxBodyBytes, cfg.MaxInFlightBytes, cfg.RequestTimeout, cfg.Tenant = "here", "x", 1, 1, 0, ""
	cfg.CardSignatures, cfg.MinCoherence = "sometimes", 1.5
	if faults := (&Config{TLSClientCAFile: "x"}).Validate(); !strings.Contains(fmt.Sprint(faults), "tls_client_ca_file: needs") {
		t.Errorf("authorities without a certificate: %v", faults)
	}
	var keys []string
	for _, fault := range cfg.Validate() {
		keys = append(keys, fault.Key)
	}
	want := "tenant listen tls_cert_file card_signatures min_coherence methodology max_body_bytes max_in_flight_bytes request_timeout"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("faults of %s, want %s", got, want)
	}
}

// A token that plumbline token makes is used, rotated and revoked while ingest runs.
func TestTokenIsMadeUsedAndRevoked(t *testing.T) {
	var file auth.TokenFile
	r := start(t, withTokens(t, "other a traces:write"), configured(func(cfg *Config) { file.Path = cfg.TokenFile }))
	use := func(token string, code int) {
		t.Helper()
		r.await(func() bool {
			answer := r.post(body(trace("shop", "1")), bearing(token))
			return answer.code == code && (code != http.StatusUnauthorized || answer.problem(t).Word == "token")
		})
	}
	made, err := file.New(t.Context(), auth.Entry{Name: "shop", Agents: []string{"shop"}, Scopes: auth.PublisherScopes()}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	use(made, http.StatusOK)
	rotated, _, err := file.Rotate(t.Context(), "shop", time.Hour, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	use(rotated, http.StatusOK)
	use(made, http.StatusOK)
	if err := file.Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	use(made, http.StatusUnauthorized)
	use(rotated, http.StatusUnauthorized)
}

// A token that is revoked while a body arrives stores nothing more. The lines that were stored before stay so.
func TestTokenIsRevokedDuringARequest(t *testing.T) {
	var file auth.TokenFile
	var made string
	r := start(t, withTokens(t, "other b traces:write"), configured(func(cfg *Config) {
		file.Path = cfg.TokenFile
		var err error
		if made, err = file.New(t.Context(), auth.Entry{Name: "shop", Agents: []string{"did:web:a"}, Scopes: auth.PublisherScopes()}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}))
	first := body(traces("did:web:a", chunkLines)...)
	last := body(trace("did:web:a", "last"))
	conn := r.slowly("/v1/traces", len(first)+len(last)+1, first, ndjson, bearing(made))
	began := time.Now() // or earlier: ingest reads the body
	client := r.broker.Connect()
	r.await(func() bool {
		state, err := client.StreamState(t.Context(), stream.Traces)
		return err == nil && state.Messages == chunkLines
	})
	if err := file.Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	r.await(func() bool {
		return r.post("{", bearing(made)).code == http.StatusUnauthorized && time.Since(began) > reload.Recheck
	})
	if _, err := io.WriteString(conn, last+"\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	got := reply{code: answer.StatusCode, header: answer.Header, text: string(text)}
	requests.Describes(t, httptest.NewRequest(http.MethodPost, "/v1/traces", nil), got.code, got.header, got.text)
	lines := got.lines(t)
	if got.code != http.StatusUnauthorized || len(lines) != chunkLines+1 {
		t.Fatalf("%d with %d lines", got.code, len(lines))
	}
	if before, after := lines[chunkLines-1], lines[chunkLines]; before.Status != "accepted" || after.Status != "retry" || !strings.Contains(after.Faults[0].Message, "revoked") {
		t.Errorf("%+v, then %+v", before, after)
	}
	r.stored(chunkLines)
}

// Without tokens no policy can be enforced: anyone on this machine could sign.
func TestEnforceNeedsATokenFile(t *testing.T) {
	cfg := Default()
	cfg.MessagePoliciesFile = filepath.Join(t.TempDir(), "policies.yaml")
	policies := "agents: {shop: {mode: enforce}, slow: {mode: warn}, fleet-*: {mode: enforce}}"
	if err := os.WriteFile(cfg.MessagePoliciesFile, []byte(policies), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	err = ServeOn(t.Context(), listener, &cfg, offline(t).env, nil)
	if !errors.Is(err, config.ErrUsage) {
		t.Fatalf("it ends with %v", err)
	}
	for _, want := range []string{"policies.yaml", "agents.fleet-*, agents.shop", "token_file"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "agents.slow") {
			t.Errorf("%v: want it to say %s", err, want)
		}
	}
}
