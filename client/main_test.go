package client_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/client/overnats"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

// card returns a valid card that declares honesty and more.
func card(agent string, more ...string) []byte {
	values, err := json.Marshal(append([]string{"honesty"}, more...))
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return fmt.Appendf(nil, `{"aap_version":"0.1.0","card_id":%q,"agent_id":%q,"issued_at":"2026-01-01T00:00:00Z",`+
		`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":%s},`+
		`"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[]},`+
		`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`, "ac-"+agent, agent, values)
}

// serve runs an ingest and returns its address.
func serve(t *testing.T, common config.Common, change ...func(*ingest.Config)) (url string) {
	t.Helper()
	cfg := ingest.Default()
	cfg.Common, cfg.HandshakeKeyFile = common, filepath.Join(t.TempDir(), "handshake.key")
	cfg.MicroKeyFile = filepath.Join(t.TempDir(), "micro.key")
	for _, alter := range change {
		alter(&cfg)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env := pipelinetest.Env(t, "ingest")
	pipelinetest.Go(t, func(ctx context.Context) error { return ingest.ServeOn(ctx, listener, &cfg, env, nil) })
	pipelinetest.Await(t, "the ingest to be ready", func() bool { return env.Health.Readiness().Ready })
	if cfg.TLSCertFile != "" {
		return "https://" + listener.Addr().String()
	}
	return "http://" + listener.Addr().String()
}

func withTLS(authority *transporttest.Authority) func(*ingest.Config) {
	return func(cfg *ingest.Config) { cfg.TLSCertFile, cfg.TLSKeyFile = authority.CertFile, authority.KeyFile }
}

// overHTTP and overNATS return transports that are closed when the test ends.
func overHTTP(t *testing.T, config client.HTTPConfig) *client.HTTP {
	t.Helper()
	transport, err := client.NewHTTP(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	return transport
}

func overNATS(t *testing.T, url string, options ...nats.Option) *overnats.Transport {
	t.Helper()
	conn, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return overnats.New(conn)
}

// keysOf requests the signing keys of a service.
func keysOf(t *testing.T, url string, secure *tls.Config) []schema.Key {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: secure}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(url + "/v1/handshake/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var answered struct {
		Keys []struct {
			KeyID     string `json:"key_id"`
			PublicKey string `json:"public_key"`
		} `json:"keys"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&answered); err != nil || len(answered.Keys) != 1 {
		t.Fatalf("the keys are %+v, error %v", answered, err)
	}
	public, err := base64.StdEncoding.DecodeString(answered.Keys[0].PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return []schema.Key{{KeyID: answered.Keys[0].KeyID, PublicKey: public}}
}
