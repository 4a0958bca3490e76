package sim

import (
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// Stream is one of the broker's streams. Its members are valid during an operation.
type Stream struct {
	Name    string
	Created time.Time
	Stored  []Stored // the index plus 1 is the sequence

	world   *World
	ids     map[string]uint64
	changed chan struct{} // closed when a message was stored
}

// Stored is one stored message of a stream.
type Stored struct {
	Subject   string
	ID        string // under which it was published; "": none
	Data      []byte
	Agent     string // only in stream TRACES, like Partition
	Partition int
	Received  time.Time
}

// duplicateWindow is how long the broker remembers an id.
const duplicateWindow = stream.DefaultDuplicateWindow

// Stream returns the stream with a name, and creates it at the first call.
func (w *World) Stream(name string) *Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.streams[name]
	if s == nil {
		s = &Stream{Name: name, Created: w.began.UTC(), world: w, ids: map[string]uint64{}, changed: make(chan struct{})}
		w.streams[name] = s
	}
	return s
}

// Publish stores a message from a publisher without faults.
func (s *Stream) Publish(m Stored) (sequence uint64) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	sequence, _ = s.append(m)
	s.world.note(0, fmt.Sprintf("%s %d: %s %s", s.Name, sequence, m.Subject, m.ID), none)
	return sequence
}

// append stores a message, or finds the message that was stored under its id.
func (s *Stream) append(m Stored) (sequence uint64, duplicate bool) {
	if earlier, known := s.known(m.ID); known {
		return earlier, true
	}
	m.Received = time.Now().UTC()
	s.Stored = append(s.Stored, m)
	sequence = s.last()
	s.ids[m.ID] = sequence
	close(s.changed)
	s.changed = make(chan struct{})
	return sequence, false
}

// known finds the message that was stored under an id within the duplicate window.
func (s *Stream) known(id string) (sequence uint64, known bool) {
	sequence, known = s.ids[id]
	return sequence, known && id != "" && time.Since(s.Stored[sequence-1].Received) < duplicateWindow
}

func (s *Stream) last() uint64 { return uint64(len(s.Stored)) }

// At returns the message with a sequence.
func (s *Stream) At(sequence uint64) *Stored { return &s.Stored[sequence-1] }

// state returns the state of the stream as a client sees it.
func (s *Stream) state() stream.State {
	state := stream.State{Created: s.Created, FirstSequence: 1, LastSequence: s.last(), Messages: s.last(), Now: time.Now().UTC()}
	if n := len(s.Stored); n > 0 {
		state.LastReceived = s.Stored[n-1].Received
	}
	return state
}
