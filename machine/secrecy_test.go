package machine_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/locked"
	"github.com/plumbline/plumbline/pipeline/stream"
)

const secret = "hunter2"

// planted returns records, valid and invalid, with a secret in every place where an agent
// that may publish on the broker can put one.
func planted() []stream.Record {
	good := string(pipelinetest.Trace("tr", "a", "ac", "s", "2026-02-01T00:00:00Z", "search").Data)
	var records []stream.Record
	for i, change := range [][2]string{
		{`{"`, `{"password":"hunter2","x":`}, // not JSON
		{`}`, `"token":"hunter2"`},
		{good, `"hunter2"`}, {good, `hunter2`}, {good, `{"hunter2":1}`}, {good, `{"password":` + strings.Repeat("hunter2", 200<<10) + `}`},
		{`"card_id"`, `"token":"hunter2","card_id"`},
		{`"card_id":"ac"`, `"card_id":"hunter2"`}, // a card that is not registered
		{`"agent_id":"a"`, `"agent_id":"hunter2"`},
		{`"trace_id":"tr"`, `"trace_id":"{\"token\":\"hunter2\"}"`},
		{`"trace_id":"tr"`, `"trace_id":"tr","trace_id":"hunter2"`},
		{`"timestamp":"`, `"timestamp":"hunter2`}, {`"timestamp":`, `"timestamp":["hunter2"],"x":`},
		{`"category":"`, `"category":"hunter2`}, {`"type":"`, `"type":"hunter2`}, {`"name":"search"`, `"name":{"password":"hunter2"}`},
		{`"selected":"`, `"selected":"hunter2`}, {`"values_applied":[`, `"values_applied":["hunter2",`},
		{`"decision":{`, `"decision":{"confidence":"hunter2",`},
		{`"session_id":"s"`, `"session_id":"s","metadata":{"api_key":"hunter2","amount":"hunter2","session_end":"hunter2",` +
			`"execution":{"tool_name":"web.get","inputs":{"key":"hunter2"},"outputs":"hunter2","error":"hunter2","cost_cents":"hunter2"}}`},
		{`"session_id":"s"`, `"session_id":"s","metadata":{"message_auth":{"key_id":"hunter2","hmac":"hunter2"},"api_key":"hunter2"}`},
		{`"session_id":"s"`, `"session_id":"hunter2","metadata":{"session_end":true}`},
	} {
		raw := strings.Replace(good, change[0], change[1], 1)
		raw = strings.Replace(raw, `"trace_id":"tr"`, `"trace_id":"tr-`+string(rune('a'+i))+`"`, 1)
		records = append(records, pipelinetest.Record("a", []byte(raw)))
	}
	return records
}

// Agents put secrets into what they send, in every way. No service shows one of them
// in its log, at any level, in its metrics, in its health or in what it sends over OTLP.
func TestSecretsAreInNoLogAndNoMetric(t *testing.T) {
	log, dir, receiver := new(locked.Text), t.TempDir(), receiveTelemetry(t)
	m, err := machine.Start(t.Context(), machine.Config{DataDir: dir, Listen: "127.0.0.1:0", OTLP: &config.OTLP{Endpoint: receiver.URL, Protocol: config.OTLPOverHTTP, Interval: time.Second},
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	at := m.Endpoints()
	publish(t, at)
	records := planted()
	publishRecords(t, at, records)
	for _, path := range []string{"/v1/traces", "/v1/cards/c", "/v1/sessions/end", "/v1/micro", "/v1/micro/verify", "/v1/messages",
		"/v1/messages/verify", "/v1/tool-calls", "/v1/tool-results", "/v1/dead-letters/marks", "/v1/coherence", "/v1/" + secret} {
		for _, body := range []string{`{"password":"hunter2"}`, `{"password":"hunter2"`, `"hunter2"`, `[{"session":"hunter2"}]`} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodGet} {
				checkAnswer(t, method, at.IngestURL+path+"?token="+secret, body)
			}
		}
	}
	pipelinetest.Await(t, "all traces stored or refused, and a bundle", func() bool {
		c := counts(t, at)
		return c.Traces > 5 && c.Traces+c.DeadLetters > uint64(len(records)) && c.Bundles > 0
	})
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		checkAnswer(t, http.MethodGet, at.IngestURL+path, "")
	}
	pipelinetest.Await(t, "metrics, and spans of each stage", receiver.complete)
	stop(t, m)
	checkLog(t, "the services", log.String())
	for _, server := range []string{"broker/broker.log", "engine/engine.out"} {
		text, err := os.ReadFile(filepath.Join(dir, server))
		if err != nil {
			t.Fatal(err)
		}
		checkLog(t, server, string(text))
	}
}

func checkLog(t *testing.T, whose, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, secret) {
			t.Errorf("the log of %s contains the secret: %s", whose, line)
		}
	}
}

func publishRecords(t *testing.T, at machine.Endpoints, records []stream.Record) {
	t.Helper()
	client, err := stream.Connect(t.Context(), stream.Config{URL: at.NATSURL, MonitorURL: at.NATSMonitorURL, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	outcomes, err := committer.Publish(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		if o.Err != nil {
			t.Errorf("record %d: %v", i, o.Err)
		}
	}
}

// checkAnswer sends a body with the secret as its token, and requires that the
// answer does not contain the secret.
func checkAnswer(t *testing.T, method, url, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || bytes.Contains(text, []byte(secret)) {
		t.Errorf("%s %s %s: %d %s %v", method, url, body, answer.StatusCode, text, err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
}
