package client

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// fakeIngest answers every line as status says, and keeps what it got.
type fakeIngest struct {
	*httptest.Server

	mu       sync.Mutex
	bodies   []string
	ends     []string
	status   func(request, line int, trace string) string // nil: accepted
	refusals int                                          // requests that are answered with 503 first
}

func newFakeIngest(t *testing.T) *fakeIngest {
	f := new(fakeIngest)
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeIngest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusals > 0 {
		f.refusals--
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"error":"unavailable","message":"later"}`, http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "/v1/sessions/end" {
		f.ends = append(f.ends, string(body))
		w.WriteHeader(http.StatusAccepted)
		return
	}
	f.bodies = append(f.bodies, string(body))
	for i, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
		status := Accepted
		if f.status != nil {
			status = f.status(len(f.bodies), i, line)
		}
		var ids struct {
			TraceID string `json:"trace_id"`
		}
		_ = json.Unmarshal([]byte(line), &ids)
		fmt.Fprintf(w, `{"line":%d,"trace_id":%q,"status":%q,"faults":[{"pointer":"/x","message":"m"}],"warnings":[{"code":"unknown_card","pointer":"/card_id","message":"no card"}]}`+"\n",
			i+1, ids.TraceID, status)
	}
}

// lines returns the lines that it got.
func (f *fakeIngest) lines() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, body := range f.bodies {
		all = append(all, strings.Split(strings.TrimSpace(body), "\n")...)
	}
	return all
}

// heard collects what a recorder reports.
type heard struct {
	mu       sync.Mutex
	errors   []*RecordError
	warnings []string
}

func (h *heard) error(e *RecordError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors = append(h.errors, e)
}

func (h *heard) warning(code, message, traceID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warnings = append(h.warnings, code)
}

func (h *heard) of(kind string) (all []*RecordError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.errors {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// record starts a recorder of agent "a" that is closed with the test.
func record(t *testing.T, url string, change func(*RecorderConfig)) (*Recorder, *heard) {
	t.Helper()
	h := new(heard)
	config := RecorderConfig{AgentID: "a", CardID: "c", URL: url, Spool: t.TempDir(), OnError: h.error, OnWarning: h.warning}
	if change != nil {
		change(&config)
	}
	r, err := NewRecorder(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.Close(ended)
	})
	return r, h
}

func flush(t *testing.T, r *Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// nobody is an address where nothing listens.
const nobody = "http://127.0.0.1:1"

func TestRecorderBuildsTheTrace(t *testing.T) {
	f := newFakeIngest(t)
	r, h := record(t, f.URL, nil)
	s := r.Session("s-1")
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	id := s.Record(Decision{
		TraceID: "tr-1", Timestamp: at, Action: "buy", Type: schema.ActionRecommend, Category: schema.CategoryEscalation,
		Target: &Target{"shop", "s-9"}, Parameters: map[string]any{"amount": 12.5, "big": int64(1) << 60, "nan": math.NaN(), "when": at, "bad": make(chan int)},
		Alternatives: []Alternative{{OptionID: "A", Description: "buy it", Score: new(0.9), ScoringFactors: map[string]float64{"cost": 0.1}, Flags: []string{"sponsored"}}, {OptionID: "B", Description: "wait"}},
		Selected:     "A", Reasoning: "needed", Values: []string{"honesty"}, Confidence: new(0.5),
		Escalation: &Escalation{Required: true, Reason: "costs", ID: "e", Status: schema.EscalationApproved, TriggersChecked: []TriggerCheck{{"amount > 10", true, 12.5}},
			Response: &PrincipalResponse{Decision: "approved", Timestamp: at}},
		Execution: &Execution{ToolName: "shop.buy", Inputs: map[string]any{"large": strings.Repeat("x", maxMemberBytes)}, Outputs: []string{"sold"}, CostCents: 3},
		Turn:      new(int64(2)), PriorTraceIDs: []string{"tr-0"}, Environment: map[string]any{"os": "linux"}, Metadata: map[string]any{"note": "n"},
	})
	s.Record(Decision{Action: "ping", Timestamp: at.Add(-time.Hour)})
	s.End()
	s.End()
	flush(t, r)
	lines := f.lines()
	if len(lines) != 2 || id != "tr-1" {
		t.Fatalf("got %q", lines)
	}
	bad := lines[0][strings.Index(lines[0], `"bad":"0x`)+len(`"bad":"`):]
	bad = bad[:strings.Index(bad, `"`)]
	want := `{"trace_id":"tr-1","agent_id":"a","card_id":"c","timestamp":"2026-03-01T12:00:00Z",` +
		`"action":{"type":"recommend","name":"buy","category":"escalation_trigger","target":{"type":"shop","identifier":"s-9"},` +
		`"parameters":{"amount":12.5,"bad":"` + bad + `","big":"1152921504606846976","nan":"NaN","when":"2026-03-01T12:00:00Z"}},` +
		`"decision":{"alternatives_considered":[{"option_id":"A","description":"buy it","score":0.9,"scoring_factors":{"cost":0.1},"flags":["sponsored"]},{"option_id":"B","description":"wait"}],` +
		`"selected":"A","selection_reasoning":"needed","values_applied":["honesty"],"confidence":0.5},` +
		`"escalation":{"evaluated":true,"triggers_checked":[{"trigger":"amount > 10","matched":true,"value_observed":12.5}],"required":true,"reason":"costs","escalation_id":"e","escalation_status":"approved",` +
		`"principal_response":{"decision":"approved","timestamp":"2026-03-01T12:00:00Z"}},` +
		`"context":{"session_id":"s-1","conversation_turn":2,"prior_trace_ids":["tr-0"],"environment":{"os":"linux"},"metadata":{` +
		`"execution":{"tool_name":"shop.buy","inputs":{"large":{"left_out":{"bytes":131074,"sha256":"` + schema.DigestOf([]byte(`"`+strings.Repeat("x", maxMemberBytes)+`"`)).String() + `"}}},"outputs":["sold"],"cost_cents":3},` +
		`"note":"n","sequence_number":1}}}`
	if lines[0] != want {
		t.Errorf("got\n%s\nwant\n%s", lines[0], want)
	}
	// The clock was set back, and only the action was given.
	if !strings.Contains(lines[1], `"timestamp":"2026-03-01T12:00:00Z"`) || !strings.Contains(lines[1], `"selected":"ping"`) || !strings.Contains(lines[1], `"sequence_number":2`) {
		t.Errorf("got %s", lines[1])
	}
	if len(f.ends) != 1 || f.ends[0] != `{"agent_id":"a","session_id":"s-1"}` {
		t.Errorf("ends: %q", f.ends)
	}
	if got := fmt.Sprint(h.warnings); got != "[left_out unknown_card]" {
		t.Errorf("warnings are %s, each code is told once", got)
	}
	if got := r.Stats(); got.Recorded != 2 || got.Accepted != 2 || got.Waiting != 0 {
		t.Errorf("counted %+v", got)
	}
}

func TestCallsAndNumbers(t *testing.T) {
	f := newFakeIngest(t)
	r, _ := record(t, f.URL, nil)
	s := r.Session("")
	first := s.Begin(Decision{Action: "search", Parameters: map[string]any{"q": "kettle"}})
	second := s.Begin(Decision{Action: "buy", Metadata: map[string]any{"mine": 1}})
	second.End(nil, errors.New("no stock"))
	first.End([]string{"steel"}, nil)
	again := r.Session(s.ID())
	if again.NextNumber() != 3 {
		t.Errorf("the session goes on with %d", again.NextNumber())
	}
	r.Session("u", FirstNumber(0)).Record(Decision{Action: "x"})
	kept := r.Session("k", KeepOpen(), FirstNumber(7))
	kept.Record(Decision{Action: "y"})
	kept.End()
	flush(t, r)
	lines := f.lines()
	for i, want := range []string{
		`"sequence_number":2}`, `"execution":{"tool_name":"search","inputs":{"q":"kettle"},"outputs":["steel"]},"sequence_number":1}`, `"context":{"session_id":"u"}`, `"sequence_number":7`,
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %s: %s", i, want, lines[i])
		}
	}
	if !strings.Contains(lines[0], `"error":"no stock"`) || !strings.Contains(lines[0], `"mine":1`) || !strings.Contains(lines[0], `"duration_ms":`) {
		t.Errorf("got %s", lines[0])
	}
	if len(f.ends) != 0 {
		t.Errorf("ends: %q", f.ends)
	}
}

// The last sessions are remembered, also those that are never ended.
func TestSessionsAreForgotten(t *testing.T) {
	r, _ := record(t, nobody, func(c *RecorderConfig) { c.Spool = NoSpool })
	for i := range maxSessions {
		r.Session(fmt.Sprint(i), KeepOpen(), FirstNumber(7))
	}
	r.Session("0") // is used again
	r.Session("one more")
	if len(r.sessions) != maxSessions {
		t.Errorf("%d sessions are remembered", len(r.sessions))
	}
	for _, c := range []struct {
		id   string
		next uint64
	}{{"0", 7}, {"2", 7}, {"1", 1}} {
		if got := r.Session(c.id).NextNumber(); got != c.next {
			t.Errorf("session %s goes on with %d, want %d", c.id, got, c.next)
		}
	}
}

func TestRecorderSigns(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeIngest(t)
	r, _ := record(t, f.URL, func(c *RecorderConfig) { c.Key, c.KeyID = private, "k" })
	s := r.Session("s")
	s.Record(Decision{Action: "x", Parameters: map[string]any{"n": int64(1)<<53 + 1}})
	s.End()
	flush(t, r)
	trace, err := schema.Admit("a", []byte(f.lines()[0]))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signature.Of(trace.Others)
	if err == nil {
		err = signature.Verify(trace.Raw, *signed, []schema.Key{{KeyID: "k", PublicKey: public}})
	}
	if err != nil || len(f.ends) != 1 {
		t.Errorf("the signature: %v, ends %q", err, f.ends)
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

// What JSON cannot hold costs the value, never the trace, and never the agent.
func TestValuesThatAreNoJSON(t *testing.T) {
	f := newFakeIngest(t)
	r, h := record(t, f.URL, nil)
	loop, list := map[string]any{}, make([]any, 1)
	loop["list"], list[0] = list, loop
	large := strings.Repeat("x", 120<<10)
	call := r.Session("s").Begin(Decision{Action: "x", Parameters: map[string]any{"p": panics{}, "loop": loop, "list": &list, "small": 1}})
	call.End(nil, errors.New(strings.Repeat("é", 1<<20)))
	r.Session("s").Record(Decision{Action: "y", Parameters: map[string]any{"a": large, "b": large, "c": large, "d": large, "e": large, "f": large, "g": large, "small": 1}})
	flush(t, r)
	lines := f.lines()
	if len(lines) != 2 {
		t.Fatalf("got %d traces, told %+v", len(lines), h.errors)
	}
	left := `{"left_out":{"levels":32}}`
	if want := `"parameters":{"list":` + left + `,"loop":` + left + `,"p":{"left_out":{"error":"panic"}},"small":1}`; !strings.Contains(lines[0], want) {
		t.Errorf("got %s, want %s", lines[0], want)
	}
	if !strings.Contains(lines[0], `"error":"éé`) || !strings.Contains(lines[0], `é…"`) || len(lines[0]) > 6000 {
		t.Errorf("the error of a trace with %d bytes is wrong", len(lines[0]))
	}
	if strings.Count(lines[1], `{"left_out":{"bytes":122882,`) != 7 || !strings.Contains(lines[1], `"small":1}`) {
		t.Errorf("got %.2000s", lines[1])
	}
}

// Nothing that the agent hands over or that its callbacks do ends the agent.
func TestRecorderOutlivesPanics(t *testing.T) {
	f := newFakeIngest(t)
	told := make(chan string, 10)
	r, _ := record(t, f.URL, func(c *RecorderConfig) {
		c.OnError = func(e *RecordError) { told <- e.Kind; panic("callback") }
		c.OnWarning = func(string, string, string) { panic("callback") }
	})
	s := r.Session("s")
	s.Record(Decision{Action: "x", Parameters: map[string]any{"p": panics{}}})
	s.Record(Decision{})
	flush(t, r)
	if kind := <-told; kind != KindInvalid || r.Stats().Accepted != 1 {
		t.Errorf("told %s, counted %+v", kind, r.Stats())
	}
}

func TestRecorderRefusesSettingsThatCannotWork(t *testing.T) {
	for name, c := range map[string]RecorderConfig{
		"no agent":     {CardID: "c"},
		"no card":      {AgentID: "a"},
		"no address":   {AgentID: "a", CardID: "c", URL: "localhost:8080"},
		"long agent":   {AgentID: strings.Repeat("a", schema.MaxIDBytes+1), CardID: "c"},
		"no disk":      {AgentID: "a", CardID: "c", Spool: NoSpool, Durable: true},
		"half a token": {AgentID: "a", CardID: "c", Token: "se cret"},
		"half a key":   {AgentID: "a", CardID: "c", Key: make(ed25519.PrivateKey, 64)},
	} {
		if _, err := NewRecorder(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
