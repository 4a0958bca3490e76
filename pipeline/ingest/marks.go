package ingest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Marks stores what operators did about dead letters (stream.Client).
type Marks interface {
	MarkDeadLetters(ctx context.Context, marks []wire.Mark) error
}

const (
	maxMarks     = 1000
	maxNoteBytes = 1000
)

// letterMarks is a request for one mark on many letters.
type letterMarks struct {
	Mark    string          `json:"mark"`
	Digests []schema.Digest `json:"digests"` // of the letters' bytes
	Note    string          `json:"note"`
}

// markLetters records what an operator did about dead letters. The letters do not change.
func (s *server) markLetters(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	raw, p := s.document(w, r, 128<<10, typesOfOther...)
	if p != nil {
		return p.write(w)
	}
	var asked letterMarks
	if err := json.Unmarshal(raw, &asked, json.RejectUnknownMembers(true)); err != nil {
		return unreadable("want {mark, digests, note}", err).write(w)
	}
	if p := asked.check(); p != nil {
		return p.write(w)
	}
	marks := make([]wire.Mark, len(asked.Digests))
	for i, digest := range asked.Digests {
		marks[i] = wire.Mark{Digest: digest, Mark: asked.Mark, By: grant.Name, At: time.Now().UTC(), Note: asked.Note}
	}
	if err := s.marks.MarkDeadLetters(r.Context(), marks); err != nil {
		return s.failure("mark dead letters", err).write(w)
	}
	return writeJSON(w, http.StatusAccepted, map[string]int{"marked": len(marks)})
}

func (m *letterMarks) check() *problem {
	p := problemf(http.StatusBadRequest, "invalid_request", "it is not valid: see the faults")
	fault := func(pointer, format string, args ...any) {
		p.Faults = append(p.Faults, schema.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
	if m.Mark != wire.MarkDropped && m.Mark != wire.MarkReplayed {
		fault("/mark", "want %s or %s", wire.MarkDropped, wire.MarkReplayed)
	}
	if n := len(m.Digests); n == 0 || n > maxMarks {
		fault("/digests", "%d of them: want 1 to %d", n, maxMarks)
	}
	if len(m.Note) > maxNoteBytes {
		fault("/note", "more than %d bytes", maxNoteBytes)
	}
	if p.Faults == nil {
		return nil
	}
	return p
}
