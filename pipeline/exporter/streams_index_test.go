package exporter

import (
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// What a session has in an earlier stream is sealed first, also if the broker's clock was set back before the stream
// was created again. A stream that was created after the exporter asked is left for the next round.
func TestStreamsOfASessionAreSealedInOrder(t *testing.T) {
	current, clock := time.Unix(1000, 0), time.Unix(2000, 0)
	for name, earlier := range map[string]int64{"the clock goes on": 500e9, "the clock was set back": 1500e9} {
		t.Run(name, func(t *testing.T) {
			x, key := newIndex(10), store.SessionKey{AgentID: "a", SessionID: "s"}
			x.created = current
			later := current.UnixNano() + 1
			for i, of := range []int64{current.UnixNano(), earlier, later} {
				x.settled = min(i, 2)
				x.fold(&stream.Message{Sequence: uint64(i + 1), Received: clock}, []schema.Receipt{{AgentID: "a", SessionID: "s", Stream: of, Sequence: 7}}, nil)
			}
			first, second, third := x.sessions[streamKey{key, earlier}], x.sessions[streamKey{key, current.UnixNano()}], x.sessions[streamKey{key, later}]
			if x.follows(first) || !first.followed || !x.follows(second) || !x.follows(third) || third.followed {
				t.Error("they are not sealed in order")
			}
			if a, b, c := x.floor(first, 7), x.floor(second, 7), x.floor(third, 7); a != math.MaxUint64 || b != 7 || c != 0 {
				t.Errorf("they may be sealed up to %d, %d, %d", a, b, c)
			}
			for _, c := range []struct {
				session *openSession
				of      int64 // the stream of the part sealed last, up to sequence 5
				want    uint64
			}{
				{first, earlier, 5}, {second, earlier, 0}, {third, earlier, 0},
				{first, current.UnixNano(), math.MaxUint64}, {second, current.UnixNano(), 5}, {third, current.UnixNano(), 0},
				{second, 42, 0}, // no receipt names that one any more
			} {
				last := &seal.Record{State: seal.Sealed, StreamCreated: time.Unix(0, c.of), Cut: 5}
				if got := x.covered(c.session, last); got != c.want {
					t.Errorf("after a part of stream %d, parts contain stream %d up to %d, want %d", c.of, c.session.stream, got, c.want)
				}
			}
		})
	}
}

// Receipts and requests of earlier versions name no stream. They count in the current one, unless they are older.
func TestOldMessagesNameNoStream(t *testing.T) {
	x, key := newIndex(10), store.SessionKey{AgentID: "a", SessionID: "s"}
	x.created = time.Unix(1000, 0)
	for i, received := range []time.Time{time.Unix(900, 0), time.Unix(1100, 0)} {
		x.fold(&stream.Message{Sequence: uint64(2*i + 1), Received: received}, []schema.Receipt{{AgentID: "a", SessionID: "s", Sequence: 7}}, nil)
		x.fold(&stream.Message{Sequence: uint64(2*i + 2), Received: received}, nil, &wire.EndRequest{AgentID: "a", SessionID: "s", ThroughSequence: uint64(10 * i)})
	}
	x.settled = len(x.streams)
	before, now := x.sessions[streamKey{key, unknownStream}], x.sessions[streamKey{key, x.created.UnixNano()}]
	if len(x.sessions) != 2 || len(before.receipts) != 1 || len(now.receipts) != 1 || before.through != 0 || now.through != 10 || !before.requested {
		t.Fatalf("%+v, %+v", before, now)
	}
	if !x.isOf(before, time.Unix(500, 0)) || x.isOf(before, x.created) || !x.isOf(now, x.created) || !x.follows(now) {
		t.Error("the older receipts do not count in an earlier stream")
	}
}

// A part was planned in a stream that no longer exists, and its receipts do not either. The next part takes its place: it
// continues the same part.
func TestPartPlannedInALostStreamIsReplaced(t *testing.T) {
	j := &job{session: &openSession{receipts: []schema.Receipt{{Sequence: 1}}}}
	plan := new(exporter).newPlan(j, &seal.Record{State: seal.Planned, Part: 3, Previous: "of part 2"}, 1, 1)
	if plan.Part != 3 || plan.Previous != "of part 2" {
		t.Errorf("part %d continues %q", plan.Part, plan.Previous)
	}
}
