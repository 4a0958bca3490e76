package drift

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// traces returns messages of one agent, one a second from a number on.
func traces(from, to int) (messages []stream.Message) {
	for n := from; n < to; n++ {
		at := noon.Add(time.Duration(n) * time.Second)
		messages = append(messages, message(uint64(n+1), "a", at, again(fmt.Sprintf("tr-%03d", n), "a", at)))
	}
	return messages
}

// A state that an older engine stored, as JSON, continues as the packed one does.
func TestStatesOfOlderEnginesContinue(t *testing.T) {
	cfg := publishedRule()
	cfg.Lateness = 0
	packed, older := newTable(), newTable()
	before := newBench(cfg, noCards{}, nil)
	for _, m := range traces(0, 14) {
		before.receive(m)
	}
	before.finish()
	row := before.take().states[0]
	c, reached, _, err := unpack(row.State)
	if err != nil {
		t.Fatal(err)
	}
	state, err := c.state.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	packed.insertStates([]store.DriftState{row})
	if row.State, err = json.Marshal(&storedSeries{Recent: longRecent(c.recent), Loops: c.loops.Append(nil, nil), Reached: reached, Series: state}); err != nil {
		t.Fatal(err)
	}
	older.insertStates([]store.DriftState{row})
	later := append(traces(14, 30), traces(13, 14)...) // the last one is a copy of a trace that the state remembers
	later[len(later)-1].Sequence, later[len(later)-1].Received = 31, later[len(later)-2].Received
	want := newBench(cfg, noCards{}, packed).foldAll(later)
	got := newBench(cfg, noCards{}, older).foldAll(later)
	compare(t, got.listing(), want.listing())
	if len(want.points) != 16 || len(got.states) != 1 {
		t.Fatalf("%d points, %d states", len(want.points), len(got.states))
	}
	for key, s := range got.states {
		if !slices.Equal(s.State, want.states[key].State) {
			t.Error("the states differ")
		}
	}
}

// longRecent returns recent traces as older engines stored them, whose marks were longer.
func longRecent(r recent) (long []byte) {
	for part := range slices.Chunk(r, mentionBytes) {
		long = append(append(long, part[:len(fingerprint{})]...), make([]byte, longHash-len(fingerprint{}))...)
		long = append(append(long, part[len(fingerprint{}):]...), make([]byte, longHash-len(contentMark{}))...)
	}
	return long
}

// packedState returns the packed state of a series of 40 traces, and what it has.
func packedState(t *testing.T) (packed []byte, c *content, reached, latest int64) {
	t.Helper()
	b := newBench(Default(), noCards{}, nil)
	for _, m := range traces(0, 40) {
		b.receive(m)
	}
	b.finish()
	packed = b.take().states[0].State
	c, reached, latest, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	return packed, c, reached, latest
}

// older returns a packed state as an older engine stored it, with other recent traces and without the greatest time.
func older(tag byte, packed []byte, c *content, recent []byte) []byte {
	stored := append([]byte{tag}, packed[1:1+8]...)
	stored = append(append(stored, packed[packedFixed-1]), recent...)
	return append(stored, packed[packedFixed+len(c.recent):]...)
}

// A packed state that an older engine stored continues as the one that this engine packs.
func TestPackedStatesOfOlderEnginesContinue(t *testing.T) {
	packed, want, reached, latest := packedState(t)
	for name, older := range map[string][]byte{
		"long marks": older(longMarks, packed, want, longRecent(want.recent)),
		"untimed":    older(untimed, packed, want, want.recent),
	} {
		t.Run(name, func(t *testing.T) {
			row := store.DriftState{AgentID: "a", CardID: "ac-a", LastEvent: noon, State: older}
			c, err := resume(&row)
			if err != nil || c.reached != reached || c.latest != latest {
				t.Fatalf("%v; %+v, want it to have reached %d and %d", err, c, reached, latest)
			}
			if again, err := c.content.append(nil, c.reached, c.latest); err != nil || !slices.Equal(again, packed) {
				t.Errorf("packed again it has %d bytes, want the %d of the newer one; %v", len(again), len(packed), err)
			}
			if isPacked(older) {
				t.Error("what an older engine packed is kept as it is")
			}
			for end := range older {
				if _, _, _, err := unpack(older[:end]); err == nil {
					t.Fatalf("%d of %d bytes are accepted", end, len(older))
				}
			}
		})
	}
}

// The recent traces of a state with marks of 2 bytes are known again: a copy is a copy, another content is none.
func TestShortMarksAreRead(t *testing.T) {
	packed, want, reached, _ := packedState(t)
	var short []byte
	for part := range slices.Chunk(want.recent, mentionBytes) {
		short = append(short, part[:shortMention]...)
	}
	older := older(shortMarks, packed, want, short)
	got, at, _, err := unpack(older)
	if err != nil || at != reached || len(got.recent) != len(want.recent) || isPacked(older) {
		t.Fatalf("reached %d, want %d; %d bytes of recent traces, want %d; %v", at, reached, len(got.recent), len(want.recent), err)
	}
	for part := range slices.Chunk(want.recent, mentionBytes) {
		var content, other schema.Digest
		copy(content[:], part[len(fingerprint{}):])
		other = content
		other[1]++
		if mark, known := got.recent.content(fingerprint(part)); !known || !mark.fits(content) || mark.fits(other) {
			t.Errorf("known: %t; the mark %x, of %x", known, mark, content[:4])
		}
	}
}

// A packed state that is cut short is refused.
func TestPackedStatesAreWhole(t *testing.T) {
	whole, _, _, _ := packedState(t) // which can be read
	for end := range whole {
		if _, _, _, err := unpack(whole[:end]); err == nil {
			t.Fatalf("%d of %d bytes are accepted", end, len(whole))
		}
	}
}

// Of the series in memory only busy ones stay decoded.
func TestOnlyBusySeriesStayDecoded(t *testing.T) {
	cfg := Default()
	cfg.WaitingTraces = 1
	b := newBench(cfg, noCards{}, nil)
	const agents = mostOpen + 50
	sequence := uint64(0)
	round := func(n int) {
		for i := range n {
			sequence++
			agent := fmt.Sprintf("agent-%d", i)
			at := noon.Add(time.Duration(sequence) * time.Millisecond)
			b.receive(message(sequence, agent, at, usual(fmt.Sprintf("tr-%d", sequence), agent, at)))
			if open := len(b.fold.decoded); open > mostOpen {
				t.Fatalf("%d series are decoded between two takes", open)
			}
		}
		b.finish()
		b.take()
		b.fold.stored()
	}
	decoded := func() (n int) {
		for _, c := range b.fold.series {
			if c.content != nil {
				n++
			}
			if c.packed == nil || cap(c.packed) > len(c.packed)*5/4+16 {
				t.Fatalf("a series at rest has %d bytes packed, room for %d", len(c.packed), cap(c.packed))
			}
		}
		return n
	}
	for _, step := range []struct{ traced, want int }{{mostOpen - 1, mostDecoded}, {agents, 50}, {3, 3}} {
		if round(step.traced); decoded() != step.want {
			t.Fatalf("after traces of %d agents %d of %d series are decoded, want %d", step.traced, decoded(), len(b.fold.series), step.want)
		}
	}
	size := 0
	for _, c := range b.fold.series {
		size += c.size()
	}
	if b.fold.bytes != size {
		t.Errorf("the fold counts %d bytes, its series take %d", b.fold.bytes, size)
	}
	if b.fold.evict(0); b.fold.bytes != 0 || len(b.fold.series) != 0 || len(b.fold.agents) != 0 {
		t.Errorf("after all left: %d bytes, %d series, %d agents", b.fold.bytes, len(b.fold.series), len(b.fold.agents))
	}
}
