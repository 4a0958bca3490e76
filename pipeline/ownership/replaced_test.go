package ownership_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// The stream is removed and created again while two processes read it. They process the new one from
// its first message.
func TestReplacedStream(t *testing.T) {
	s := newScene(t)
	a, b := s.work(s.client, &worker{name: "a"}), s.work(s.broker.Connect(), &worker{name: "b"})
	s.awaitShared(a, b)
	s.publish()
	s.finish()
	if err := s.broker.JetStream().DeleteStream(t.Context(), stream.Traces); err != nil {
		t.Fatal(err)
	}
	s.truncate(0)
	pipelinetest.EnsureTopology(t, s.client)
	s.publish()
	s.finish()
	s.awaitShared(a, b)
}

// The broker gets its data of an earlier time back while a process reads: the stream is shorter, and
// the positions are those of that time. What is published then has the sequences of messages that are
// gone, and is processed.
func TestRestoredBroker(t *testing.T) {
	s := newScene(t)
	s.work(s.client, &worker{name: "a"}) // alone: nobody else's joining ends its term
	s.publish()
	s.finish()
	restore := s.broker.Save()
	s.publish()
	s.finish()
	restore()
	s.truncate(100)
	s.publish()
	s.finish()
}

func (s *scene) awaitShared(a, b *worker) {
	s.t.Helper()
	pipelinetest.Await(s.t, "half of the partitions owned by each", func() bool { return a.owns() == 8 && b.owns() == 8 })
}

// truncate forgets the messages after a sequence and their results, as the broker has.
func (s *scene) truncate(last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sequence := range s.results {
		if sequence > last {
			delete(s.results, sequence)
		}
	}
	s.published = last
}
