package publisher

import (
	"errors"
	"testing"
)

func TestLettersAreSentAsTheyAreAndMarked(t *testing.T) {
	s, client := start(t,
		reply(503, `{"line":1,"trace_id":"","status":"retry","faults":[]}`),
		reply(200, `{"line":1,"trace_id":"t","status":"accepted","faults":[]}`),
		reply(403, `{"error":"scope","message":"m"}`),
		reply(202, `{"marked":1}`),
		reply(403, `{"error":"scope","message":"m"}`))
	if outcome, err := client.SendAlone(t.Context(), []byte("{\n}")); err != nil || outcome.Status != Accepted || outcome.TraceID != "t" {
		t.Errorf("%+v, error %v", outcome, err)
	}
	if s.bodies[0] != "{\n}" || s.bodies[1] != s.bodies[0] {
		t.Errorf("sent %q", s.bodies)
	}
	var problem *Problem
	if _, err := client.SendAlone(t.Context(), []byte("{}")); !errors.As(err, &problem) || problem.Code != 403 {
		t.Errorf("refused: %v", err)
	}
	if err := client.MarkLetters(t.Context(), "dropped", "n", []string{"ab"}); err != nil || s.bodies[3] != `{"digests":["ab"],"mark":"dropped","note":"n"}` {
		t.Errorf("sent %q, error %v", s.bodies, err)
	}
	if err := client.MarkLetters(t.Context(), "dropped", "", nil); !errors.As(err, &problem) {
		t.Errorf("refused: %v", err)
	}
}
