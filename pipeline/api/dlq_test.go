package api

import (
	"net/http"
	"strings"
	"testing"

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
