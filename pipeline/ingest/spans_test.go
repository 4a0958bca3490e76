package ingest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plumbline/plumbline/pipeline/otel"
	"github.com/plumbline/plumbline/schema"
)

// calls returns n spans of tool calls of an agent. change alters each.
func calls(agent string, n int, change ...func(int, ptrace.Span)) ptraceotlp.ExportRequest {
	all := ptrace.NewTraces()
	resource := all.ResourceSpans().AppendEmpty()
	attributes := resource.Resource().Attributes()
	attributes.PutStr("aap.agent_id", agent)
	attributes.PutStr("aap.card_id", "card-1")
	attributes.PutStr("aap.action.category", "bounded")
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		span := spans.AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1, 2, 3})
		span.SetSpanID(pcommon.SpanID{byte(i >> 8), byte(i), 1})
		span.SetName("execute_tool search")
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Date(2026, 1, 31, 12, 30, 0, i, time.UTC)))
		span.SetEndTimestamp(span.StartTimestamp() + 1000)
		span.Attributes().PutStr("gen_ai.operation.name", "execute_tool")
		span.Attributes().PutStr("gen_ai.tool.name", "search")
		for _, alter := range change {
			alter(i, span)
		}
	}
	return ptraceotlp.NewExportRequestFromTraces(all)
}

func protobuf(t testing.TB, r ptraceotlp.ExportRequest) []byte {
	t.Helper()
	raw, err := r.MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (r *rig) postSpans(kind string, body []byte, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, pathSpans, bytes.NewReader(body), append([]string{"Content-Type: " + kind}, headers...)...)
}

// success decodes an answer of status 200 to a request in protobuf.
func (a reply) success(t testing.TB) ptraceotlp.ExportPartialSuccess {
	t.Helper()
	r := ptraceotlp.NewExportResponse()
	if err := r.UnmarshalProto([]byte(a.text)); err != nil || a.code != 200 || a.header.Get("Content-Type") != typeProtobuf {
		t.Fatalf("%d %s %q: %v", a.code, a.header.Get("Content-Type"), a.text, err)
	}
	return r.PartialSuccess()
}

// status decodes an answer to a request in protobuf that is no success.
func (a reply) status(t testing.TB, code int) *spb.Status {
	t.Helper()
	s := new(spb.Status)
	if err := proto.Unmarshal([]byte(a.text), s); err != nil || a.code != code || a.header.Get("Content-Type") != typeProtobuf {
		t.Fatalf("%d %s %q, want %d: %v", a.code, a.header.Get("Content-Type"), a.text, code, err)
	}
	return s
}

// Spans are stored, as protobuf, JSON and gzip, and a span that is sent again is stored once, in
// whichever encoding.
func TestSpansAreStoredOnce(t *testing.T) {
	r := start(t)
	request := calls("agent-1", 2500)
	raw := protobuf(t, request)
	text, err := request.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if got := r.postSpans(typeProtobuf, raw).success(t); got.RejectedSpans() != 0 || !strings.HasPrefix(got.ErrorMessage(), "warning unknown_card, 2500 times: first span 0000010000000000 (execute_tool search): no card") {
		t.Errorf("%d %q", got.RejectedSpans(), got.ErrorMessage())
	}
	r.stored(2500)
	if got := r.postSpans("application/json", text); got.code != 200 || got.header.Get("Content-Type") != "application/json" || !strings.Contains(got.text, `"errorMessage":"warning unknown_card`) {
		t.Errorf("%d %s", got.code, got.text)
	}
	r.postSpans(typeProtobuf, packedBody(t, string(raw)).Bytes(), "Content-Encoding: gzip").success(t)
	r.postSpans("application/json; charset=utf-8", packedBody(t, string(text)).Bytes(), "Content-Encoding: gzip")
	r.stored(2500)
	if answer := r.send("GET", "/metrics", nil); !strings.Contains(answer.text, `plumbline_ingest_otlp_spans_total{outcome="accepted",stage="ingest"} 2500`) || !strings.Contains(answer.text, `plumbline_ingest_otlp_spans_total{outcome="duplicate",stage="ingest"} 7500`) {
		t.Error("the metrics have other counts")
	}
}

// What has no trace is said: decisions that lack a member are rejected and kept as dead letters, spans
// that are no decisions are counted and no error.
func TestSpansWithoutATrace(t *testing.T) {
	r := start(t, withTokens(t, "key agent-1 traces:write"))
	request := calls("agent-1", 6, func(i int, span ptrace.Span) {
		switch i {
		case 4, 5: // without an id of its own
			span.SetSpanID(pcommon.SpanID{})
		case 1: // no decision
			span.Attributes().PutStr("gen_ai.operation.name", "chat")
		case 2: // a decision without an action
			span.Attributes().Remove("gen_ai.tool.name")
		case 3: // of another agent, and with an attribute that nobody reads
			span.Attributes().PutStr("aap.agent_id", "agent-2")
			span.Attributes().PutStr("aap.decision.reasoning", "because")
		}
	})
	got := r.postSpans(typeProtobuf, protobuf(t, request), "Authorization: Bearer key").success(t)
	if got.RejectedSpans() != 4 {
		t.Errorf("%d rejected: %s", got.RejectedSpans(), got.ErrorMessage())
	}
	for _, want := range []string{"refused: /action/name: span 0002010000000000", "(no_action)", "forbidden: /agent_id: span", `may not speak for agent "agent-2"`,
		"unread_attribute: span", "refused, 2 times: first span 0000000000000000", "aap.decision.reasoning names no member"} {
		if !strings.Contains(got.ErrorMessage(), want) {
			t.Errorf("%q is not in %s", want, got.ErrorMessage())
		}
	}
	r.stored(1)
	letters := map[string]string{}
	for _, letter := range r.letters(4) {
		letters[letter.Reason] = string(letter.Data)
		if letter.Agent != "agent-1" { // that of the token
			t.Errorf("%s of agent %q", letter.Reason, letter.Agent)
		}
	}
	again, err := otel.Decode(otel.JSON, []byte(letters[otel.ReasonUnmapped]))
	if err != nil || again.SpanCount() != 1 {
		t.Errorf("dead letter %q: %v", letters[otel.ReasonUnmapped], err)
	}
	if _, err := schema.Admit("agent-2", []byte(letters[schema.ReasonForeignAgent])); err != nil {
		t.Error(err)
	}
	metrics := r.send("GET", "/metrics", nil).text
	for _, want := range []string{`otlp_spans_total{outcome="no_decision",stage="ingest"} 1`, `otlp_spans_total{outcome="refused",stage="ingest"} 3`, `otlp_spans_total{outcome="forbidden",stage="ingest"} 1`,
		`otlp_unmapped_total{reason="model_call",stage="ingest"} 1`, `otlp_unmapped_total{reason="no_action",stage="ingest"} 1`} {
		if !strings.Contains(metrics, "plumbline_ingest_"+want+"\n") {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}

// A request that fails as a whole gets a status in its own encoding, and only what may succeed later is
// retryable.
func TestSpansAreRefusedAsOTLPSays(t *testing.T) {
	r := start(t, withTokens(t, "key agent-1 traces:write", "reader agent-1 traces:read"), configured(func(cfg *Config) { cfg.MaxInFlightBytes = 8 << 20 }))
	raw := protobuf(t, calls("agent-1", 1))
	nested := pcommon.NewValueEmpty()
	for at, i := nested, 0; i < 40; i++ {
		at = at.SetEmptySlice().AppendEmpty()
	}
	deep := protobuf(t, calls("agent-1", 1, func(_ int, span ptrace.Span) { nested.CopyTo(span.Attributes().PutEmpty("deep")) }))
	for name, c := range map[string]struct {
		body    []byte
		token   string
		code    int
		grpc    int32
		message string
	}{
		"without a token":         {raw, "", 401, 16, "no token"},
		"without the scope":       {raw, "reader", 403, 7, "scope traces:write"},
		"no protobuf":             {[]byte("\xff\xff"), "key", 400, 3, "no ExportTraceServiceRequest"},
		"nested":                  {deep, "key", 400, 3, "nested in more than 64 levels"},
		"too large":               {make([]byte, maxSpansBytes+1), "key", 413, 8, "larger than"},
		"too many parts":          {bytes.Repeat([]byte{0x0a, 0}, 20_000), "key", 413, 8, "send fewer spans"},
		"gzip that is not gzip":   {raw, "key", 400, 3, "not gzip"},
		"an encoding of its own":  {raw, "key", 415, 12, "send gzip or none"},
		"a bomb of compressed 0s": {packedBody(t, strings.Repeat("\x00", maxSpansBytes+1)).Bytes(), "key", 413, 8, "larger than"},
	} {
		headers := []string{"Authorization: Bearer " + c.token}
		if c.token == "" {
			headers = nil
		}
		switch {
		case strings.Contains(name, "gzip"), strings.Contains(name, "compressed"):
			headers = append(headers, "Content-Encoding: gzip")
		case strings.Contains(name, "encoding"):
			headers = append(headers, "Content-Encoding: zstd")
		}
		answer := r.postSpans(typeProtobuf, c.body, headers...)
		if s := answer.status(t, c.code); s.Code != c.grpc || !strings.Contains(s.Message, c.message) || answer.header.Get("Retry-After") != "" {
			t.Errorf("%s: %d %s", name, s.Code, s.Message)
		}
	}
	var inJSON struct {
		Code    int
		Message string
	}
	answer := r.postSpans("application/json", []byte(`[]`), "Authorization: Bearer reader")
	if err := json.Unmarshal([]byte(answer.text), &inJSON); err != nil || answer.code != 403 || inJSON.Code != 7 {
		t.Errorf("%d %s: %v", answer.code, answer.text, err)
	}
	r.stored(0)
}

// While the broker is away the client is told to repeat the request, and then it is stored once.
func TestSpansWaitForTheBroker(t *testing.T) {
	r := start(t, wired(impatient))
	raw := protobuf(t, calls("agent-1", 3))
	r.broker.Stop()
	answer := r.postSpans(typeProtobuf, raw)
	if s := answer.status(t, 503); s.Code != 14 || answer.header.Get("Retry-After") == "" {
		t.Errorf("%d %s %q", s.Code, s.Message, answer.header.Get("Retry-After"))
	}
	r.broker.Start()
	r.await(func() bool { return r.postSpans(typeProtobuf, raw).code == 200 })
	r.postSpans(typeProtobuf, raw).success(t)
	r.stored(3)
}

// Hostile values in every attribute do no harm: the request is answered, and what is stored is a trace.
func TestHostileSpans(t *testing.T) {
	r := start(t)
	hostile := []string{"", "\x00\x01\xff\xfe", "\u202e", strings.Repeat("{", 1000), `{"a":1,"a":2}`, strings.Repeat("\x01", 140<<10), `"`, "null", `{"__proto__":{}}`, "<script>alert(1)</script>"}
	sent := calls("agent-1", 14*len(hostile), func(i int, span ptrace.Span) {
		names := []string{"aap.agent_id", "aap.card_id", "aap.action.name", "aap.action.type", "aap.decision.alternatives_considered", "aap.decision.selection_reasoning",
			"aap.context.session_id", "aap.context.environment", "gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "error.type", "anything\xff", "gen_ai.conversation.id"}
		value := hostile[i%len(hostile)]
		span.Attributes().PutStr(names[i/len(hostile)%len(names)], value)
		span.SetName(value)
		span.Status().SetMessage(value)
		if i%3 == 0 {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	})
	got := r.postSpans(typeProtobuf, protobuf(t, sent)).success(t)
	if got.RejectedSpans() == 0 || len(got.ErrorMessage()) > 16<<10 {
		t.Errorf("%d rejected: %.400s", got.RejectedSpans(), got.ErrorMessage())
	}
	r.stored(uint64(int64(sent.Traces().SpanCount()) - got.RejectedSpans()))
}

// Spans of three frameworks, as their own exporters sent them, become the traces that the table says.
func TestSpansOfFrameworks(t *testing.T) {
	r := start(t)
	for name, want := range map[string]string{"vercel": ", 2 times: first span", "langgraph": ", 2 times: first span", "adk": ": span"} {
		raw, err := os.ReadFile(filepath.Join("../otel/testdata/frameworks", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		answer := r.postSpans("application/json", raw)
		if text := "warning unknown_card" + want; answer.code != 200 || !strings.Contains(answer.text, text) || strings.Contains(answer.text, "rejectedSpans") {
			t.Errorf("%s: %d %s", name, answer.code, answer.text)
		}
	}
	r.stored(5)
}

// A request of OpenTelemetry at the address of traces is told the right one.
func TestSpansAtTheAddressOfTraces(t *testing.T) {
	r := start(t)
	request := calls("agent-1", 1)
	text, err := request.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for kind, body := range map[string][]byte{typeProtobuf: protobuf(t, request), "application/json": text} {
		answer := r.send(http.MethodPost, "/v1/traces", bytes.NewReader(body), "Content-Type: "+kind)
		if answer.code/100 != 4 || !strings.Contains(answer.text, pathSpans) {
			t.Errorf("%s: %d %s", kind, answer.code, answer.text)
		}
	}
}
