package machine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/machine"
)

// The printed endpoints contain no credentials.
func TestEndpointsWithoutSecrets(t *testing.T) {
	at := machine.Endpoints{
		IngestURL:      "http://127.0.0.1:8080",
		NATSURL:        "nats://ann:hunter2@a:4222,nats://hunter2@b:4222",
		NATSMonitorURL: "http://127.0.0.1:8222/hunter2",
		ClickHouseDSN:  "clickhouse://ann@h:9000/plumbline?password=hunter2",
		OperatorDSN:    "clickhouse://operator:hunter2@h:9000/plumbline",
		ServiceDSN:     "clickhouse://service:hunter2@h:9000/plumbline",
	}
	text, err := json.Marshal(at.WithoutSecrets())
	if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "@h:9000/plumbline") {
		t.Errorf("%s, error %v", text, err)
	}
	if at.ServiceDSN == "" {
		t.Error("the endpoints themselves were changed")
	}
}
