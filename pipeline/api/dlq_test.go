package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// A mark is stored in the stream of the letters, in addition to them, and removes nothing.
func TestMarksAreStoredWithTheDeadLetters(t *testing.T) {
	r := start(t, withTokens(t, "ann * dead-letters:write", "agent * traces:write"))
	if err := r.broker.Connect().DeadLetters(t.Context(), []wire.DeadLetter{{Stage: "ingest", Reason: schema.ReasonInvalidTrace, Data: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	digest := schema.DigestOf([]byte("{}"))
	body := `{"mark":"dropped","digests":["` + digest.String() + `"],"note":"a typing error"}`
	for token, want := range map[string]int{"agent": http.StatusForbidden, "nobody": http.StatusUnauthorized, "ann": http.StatusAccepted} {
		if answer := r.mark(body, "Authorization: Bearer "+token); answer.code != want {
			t.Errorf("%s: the answer is %+v, want %d", token, answer, want)
		}
	}
	var letters, marks int
	for _, m := range r.broker.Read(stream.DeadLetters, stream.DeadLetterConsumer, 2) {
		if m.Subject != wire.MarkSubject {
			letters++
			continue
		}
		marks++
		mark, err := wire.ParseMark(m.Data)
		if err != nil || mark.Digest != digest || mark.Mark != wire.MarkResolved || mark.By != "entry-0" || mark.Note != "a typing error" || mark.At.IsZero() {
			t.Errorf("the mark is %+v, error %v", mark, err)
		}
	}
	if letters != 1 || marks != 1 {
		t.Errorf("%d letters and %d marks", letters, marks)
	}
}

// acts returns what the operator's ledger has of requests, in order.
func (r *rig) acts(n int) (all []map[string]any) {
	r.t.Helper()
	for _, m := range r.broker.Read(stream.Ledger, "", 3+n)[3:] { // the start and its two keys are before
		var act map[string]any
		if err := json.Unmarshal(m.Data, &act); err != nil {
			r.t.Fatal(err)
		}
		if at, err := time.Parse(time.RFC3339Nano, act["at"].(string)); err != nil || time.Since(at) > time.Hour {
			r.t.Errorf("an act at %v", act["at"])
		}
		delete(act, "at")
		all = append(all, act)
	}
	return all
}

// The operator's ledger says who asked for what, with and without the console, and never the token or a secret.
func TestActsAreInTheLedger(t *testing.T) {
	r := start(t, withTokens(t, "ann-token * dead-letters:write,sessions:write"))
	digest := schema.DigestOf([]byte("{}")).String()
	ann := bearing("ann-token")
	for _, request := range []struct{ path, body, from string }{
		{"/v1/dead-letters/marks", `{"mark":"replaying","digests":["` + digest + `"],"note":"api_key=hunter2"}`, "console"},
		{"/v1/dead-letters/marks", `{"mark":"replayed","digests":["` + digest + `"]}`, "somebody"},
		{"/v1/sessions/end", `{"agent_id":"a","session_id":"s"}`, "console"},
		{"/v1/sessions/end", `{"agent_id":"a","session_id":"s"}`, ""},
	} {
		if answer := r.send(http.MethodPost, request.path, strings.NewReader(request.body), "Content-Type: application/json", ann, "Plumbline-From: "+request.from); answer.code != http.StatusAccepted {
			t.Fatalf("%s: %+v", request.path, answer)
		}
	}
	got := r.acts(4)
	want := []map[string]any{
		{"kind": "dead_letters", "mark": "replaying", "sha256": []any{digest}, "note": "api_key=[REDACTED]", "by": "entry-0", "from": "console"},
		{"kind": "dead_letters", "mark": "replayed", "sha256": []any{digest}, "by": "entry-0", "from": "api"},
		{"kind": "session_end", "agent_id": "a", "session_id": "s", "through_sequence": 0.0, "by": "entry-0", "from": "console"},
		{"kind": "session_end", "agent_id": "a", "session_id": "s", "through_sequence": 1.0, "by": "entry-0", "from": "api"}, // the first end is a message
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the ledger has %v\nwant %v", got, want)
	}
	if marks := r.broker.Read(stream.DeadLetters, stream.DeadLetterConsumer, 1); len(marks) != 1 {
		t.Errorf("%d marks: a replay that has begun is no mark", len(marks))
	}
}

// What is refused is not in the ledger, and what the ledger cannot take is not done.
func TestNoActWithoutAnEntry(t *testing.T) {
	r := start(t, withTokens(t, "ann-token a dead-letters:write,sessions:write"))
	ann := bearing("ann-token")
	if answer := r.send(http.MethodPost, "/v1/sessions/end", strings.NewReader(`{"agent_id":"other","session_id":"s"}`), "Content-Type: application/json", ann); answer.code != http.StatusForbidden {
		t.Errorf("%+v", answer)
	}
	acts := r.api.broker
	done := &actsOnly{Broker: acts}
	r.api.broker = done
	for path, body := range map[string]string{"/v1/sessions/end": `{"agent_id":"a","session_id":"s"}`,
		"/v1/dead-letters/marks": `{"mark":"resolved","digests":["` + schema.DigestOf(nil).String() + `"]}`} {
		if answer := r.send(http.MethodPost, path, strings.NewReader(body), "Content-Type: application/json", ann); answer.code != http.StatusServiceUnavailable {
			t.Errorf("%s: %+v", path, answer)
		}
	}
	if done.done != 0 {
		t.Errorf("%d acts were done without an entry", done.done)
	}
	if got := r.acts(0); len(got) != 0 {
		t.Errorf("the ledger has %v", got)
	}
}

// actsOnly is a broker whose ledger stream takes nothing.
type actsOnly struct {
	Broker
	done int
}

func (b *actsOnly) AppendLedger(context.Context, ...ledger.Event) error {
	return fmt.Errorf("append: %w", stream.ErrUnavailable)
}

func (b *actsOnly) RequestEnd(context.Context, int, wire.EndRequest) error { b.done++; return nil }

func (b *actsOnly) MarkDeadLetters(context.Context, []wire.Mark) error { b.done++; return nil }

func (r *rig) mark(body string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, "/v1/dead-letters/marks", strings.NewReader(body), append([]string{"Content-Type: application/json"}, headers...)...)
}

func TestMarksAreRefusedWithEveryFault(t *testing.T) {
	r := start(t)
	answer := r.mark(`{"mark":"deleted","digests":[],"note":"` + strings.Repeat("x", maxNoteBytes+1) + `"}`)
	if p := answer.problem(t); answer.code != http.StatusBadRequest || len(p.Faults) != 3 {
		t.Errorf("the answer is %+v", answer)
	}
	for _, body := range []string{"", "[]", `{"mark":"dropped","digests":["x"]}`, `{"mark":"dropped","all":true}`} {
		if answer := r.mark(body); answer.code != http.StatusBadRequest {
			t.Errorf("%s: the answer is %+v", body, answer)
		}
	}
}
