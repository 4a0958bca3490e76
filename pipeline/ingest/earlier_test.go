package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// recalled is a database that says where traces are, rightly or not.
type recalled struct {
	sequences map[schema.Digest]uint64
	asked     int
}

func (r *recalled) AddRoutes(*request.Router) {}

func (r *recalled) Sequences(_ context.Context, _ []time.Time, digests []schema.Digest) []uint64 {
	r.asked += len(digests)
	sequences := make([]uint64, len(digests))
	for i, digest := range digests {
		sequences[i] = r.sequences[digest]
	}
	return sequences
}

// forgotten publishes a line on NATS without an id, so the broker does not recognise its copies, as
// after its duplicate window. It returns the sequence.
func (r *rig) forgotten(agent, line string) uint64 {
	r.t.Helper()
	conn, err := nats.Connect(r.broker.URL())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Request(subject.Trace(agent), []byte(line), 10*time.Second); err != nil {
		r.t.Fatal(err)
	}
	state, err := r.broker.Connect().StreamState(r.t.Context(), stream.Traces)
	if err != nil {
		r.t.Fatal(err)
	}
	return state.LastSequence
}

// A line that the broker has forgotten is a duplicate if the database knows where it is and the stream
// has it there. Whatever else the database says, the line is published.
func TestOldLinesAreLookedUp(t *testing.T) {
	database := &recalled{sequences: map[schema.Digest]uint64{}}
	r := start(t, wired(func(s *server) { s.read(database) }))
	old := traces("did:web:a", 8)
	say := func(line string, sequence uint64) { database.sequences[schema.DigestOf([]byte(line))] = sequence }
	say(old[0], r.forgotten("did:web:a", old[0])) // right
	say(old[1], r.forgotten("did:web:a", old[2])) // another message
	say(old[3], r.forgotten("did:web:b", old[3])) // published for another agent
	say(old[4], 1_000_000)                        // gone, or never there
	r.forgotten("did:web:a", old[5])              // not known to the database
	say(old[6], r.forgotten("did:web:a", old[6])) // right, too
	fresh := strings.Replace(old[7], "2026-01-31T12:30:00Z", time.Now().UTC().Format(time.RFC3339), 1)
	say(fresh, r.forgotten("did:web:a", fresh))
	r.stored(6)
	answer := r.post(body(old[0], old[1], `{"broken"`, old[3], old[4], old[5], old[6], fresh, old[0]))
	got := ""
	for _, line := range answer.lines(t) {
		got += fmt.Sprintf("%d %s %s, ", line.Line, line.TraceID, line.Status)
	}
	want := "1 t-0 duplicate, 2 t-1 accepted, 3  refused, 4 t-3 accepted, 5 t-4 accepted, 6 t-5 accepted, 7 t-6 duplicate, 8 t-7 accepted, 9 t-0 duplicate, "
	if got != want || answer.code != 207 {
		t.Errorf("answer %d %s\nwant %s", answer.code, got, want)
	}
	r.stored(6 + 5)
	if database.asked != 7 {
		t.Errorf("%d lines were looked up, want the 7 old ones", database.asked)
	}
	if counts := r.post(body(old[0], old[6])).statuses(t); counts["duplicate"] != 2 {
		t.Errorf("a request of duplicates only: %v", counts)
	}
	r.stored(6 + 5)
}

// unconfirming is a broker that confirms some records and then fails.
type unconfirming struct{}

func (unconfirming) Held(_ context.Context, records []stream.Record, _ []uint64) ([]bool, error) {
	held := make([]bool, len(records))
	held[0] = true
	return held, errors.New("the connection is lost")
}

// What the broker did not confirm is published, also if it confirmed other lines before it failed.
func TestUnconfirmedLinesArePublished(t *testing.T) {
	database := &recalled{sequences: map[schema.Digest]uint64{}}
	r := start(t, wired(func(s *server) { s.read(database) }))
	r.server.holder = unconfirming{}
	old := traces("did:web:a", 3)
	for _, line := range old {
		database.sequences[schema.DigestOf([]byte(line))] = 1
	}
	if counts := r.post(body(old...)).statuses(t); counts["duplicate"] != 1 || counts["accepted"] != 2 {
		t.Errorf("%v", counts)
	}
	r.stored(2)
}
