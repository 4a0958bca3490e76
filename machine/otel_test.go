package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Spans of three frameworks become rows, and so do traces that were published over HTTP and NATS with a
// traceparent: each row has the ids of its span, and the verdict of its card.
func TestSpansBecomeRows(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	m := start(t, machine.Config{DataDir: t.TempDir(), OTLPGRPC: "127.0.0.1:0"})
	defer stop(t, m)
	at := m.Endpoints()
	card := `{"aap_version":"0.1.0","card_id":"ac-kettles","agent_id":"did:web:kettles.example","issued_at":"2026-01-01T00:00:00Z",
		"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":["honesty"]},
		"autonomy_envelope":{"bounded_actions":["get_stock"],"escalation_triggers":[]},
		"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`
	send(t, http.MethodPut, at.IngestURL+"/v1/cards/ac-kettles", "application/aap-alignment-card+json", []byte(card))
	for range 2 { // a client that got no answer sends its request again
		for _, framework := range []string{"vercel", "langgraph", "adk"} {
			raw, err := os.ReadFile("../pipeline/otel/testdata/frameworks/" + framework + ".json")
			if err != nil {
				t.Fatal(err)
			}
			if answer := send(t, http.MethodPost, at.IngestURL+"/otlp/v1/traces", "application/json", raw); answer != `{"partialSuccess":{}}` {
				t.Errorf("%s: %s", framework, answer)
			}
		}
	}
	exportOverGRPC(t, at.OTLPGRPC, "vercel")
	const parent = "4bf92f3577b34da6a3ce929d0e0e4736"
	line := func(id string) []byte {
		return pipelinetest.Trace(id, "a", "ac", "s", "2026-02-01T00:00:00Z", "search").Data
	}
	send(t, http.MethodPost, at.IngestURL+"/v1/traces", "application/json", line("over-http"), "traceparent", "00-"+parent+"-00f067aa0ba902b7-01")
	send(t, http.MethodPost, at.IngestURL+"/v1/traces", "application/json", line("over-http-invalid"), "traceparent", "00-"+parent+"-0-01")
	conn, err := nats.Connect(at.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for id, header := range map[string]string{"over-nats": "traceparent", "over-nats-canonical": "Traceparent"} {
		data := line(id)
		message := &nats.Msg{Subject: subject.Trace("a"), Data: data, Header: nats.Header{"Nats-Msg-Id": {schema.DigestOf(data).String()}, header: {"00-" + parent + "-00f067aa0ba902b8-00"}}}
		if _, err := conn.RequestMsgWithContext(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
	pipelinetest.Await(t, "the traces stored", func() bool { return traces(t, at) >= 9 })
	rows := query(t, at, `SELECT concat(JSONExtractString(raw, 'context', 'metadata', 'otel', 'scope', 'name'), ' ', action_name, ' ', session_id, ' ', toString(values_applied), ' ', splitByChar('\n', execution_error)[1], ' ', toString(violation_types)),
			otel_trace_id = JSONExtractString(raw, 'context', 'metadata', 'otel', 'trace_id') AND otel_span_id = JSONExtractString(raw, 'context', 'metadata', 'otel', 'span_id') AND length(otel_span_id) = 16
		FROM visible_traces AS t INNER JOIN current_verdicts AS v ON t.digest = v.digest WHERE t.agent_id = 'did:web:kettles.example' ORDER BY 1`)
	if want := []string{
		"@arizeai/openinference-instrumentation-langchain get_stock thread-1 []  [] 1",
		"@arizeai/openinference-instrumentation-langchain reserve thread-1 [] the warehouse does not answer ['UNBOUNDED_ACTION'] 1",
		"gcp.vertex.agent get_stock ~utc-2026-11-28 ['honesty']  [] 1",
		"gen_ai get_stock ~utc-2026-11-28 ['honesty']  [] 1",
		"gen_ai reserve ~utc-2026-11-28 [] the warehouse does not answer ['UNBOUNDED_ACTION'] 1",
	}; !slices.Equal(rows, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	rows = query(t, at, `SELECT trace_id, concat(otel_trace_id, ' ', otel_span_id) FROM visible_traces WHERE agent_id = 'a' ORDER BY trace_id`)
	if want := []string{
		"over-http " + parent + " 00f067aa0ba902b7",
		"over-http-invalid  ",
		"over-nats " + parent + " 00f067aa0ba902b8",
		"over-nats-canonical " + parent + " 00f067aa0ba902b8",
	}; !slices.Equal(rows, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// exportOverGRPC sends the spans of a framework, which were sent before, over OTLP/gRPC.
func exportOverGRPC(t *testing.T, address, framework string) {
	t.Helper()
	raw, err := os.ReadFile("../pipeline/otel/testdata/frameworks/" + framework + ".json")
	if err != nil {
		t.Fatal(err)
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(strings.TrimPrefix(address, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer, err := ptraceotlp.NewGRPCClient(conn).Export(t.Context(), request)
	if err != nil || answer.PartialSuccess().RejectedSpans() > 0 {
		t.Errorf("%v, %s", err, answer.PartialSuccess().ErrorMessage())
	}
}

// send makes a request that must succeed, and returns the answer. header is a name and a value.
func send(t *testing.T, method, url, kind string, body []byte, header ...string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil || answer.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s, %v", method, url, answer.StatusCode, text.String(), err)
	}
	return text.String()
}

// query returns the rows of two columns, each as one text.
func query(t *testing.T, at machine.Endpoints, statement string) (rows []string) {
	t.Helper()
	options, err := clickhouse.ParseDSN(at.ClickHouseDSN)
	if err != nil {
		t.Fatal(err)
	}
	db := clickhouse.OpenDB(options)
	defer db.Close()
	found, err := db.QueryContext(context.WithoutCancel(t.Context()), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var text string
		var more any
		if err := found.Scan(&text, &more); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("%s %v", text, more))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}
