package messages

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// An accepted message leaves no entry under its nonce. It is still recognised as a replay within
// the window.
func TestNoncesHaveNoEntries(t *testing.T) {
	s := newGateway(t)
	m := s.signed(t, message.Human, "read")
	s.verified(t, m)
	if v := s.verified(t, m); v.Reason != message.ReasonReplayed {
		t.Errorf("once more: %+v", v)
	}
	for key := range maps.Keys(s.bucket.values) {
		if strings.Contains(key, m.Nonce) {
			t.Errorf("the bucket has the key %s", key)
		}
	}
}

// Acceptances that an earlier version stored under nonces remain valid. They are moved once the
// window is over, and not before. Then the bucket has no key of a nonce.
func TestAcceptancesOfAnEarlierVersionAreMoved(t *testing.T) {
	bucket := openBucket(t)
	s := newGateway(t)
	s.Records = NewRecords(bucket)
	old := s.earlier(t, bucket)
	s.now = s.now.Add(message.DefaultWindow)
	young := s.earlier(t, bucket)
	if _, err := bucket.Create(t.Context(), "nonce.none", []byte("no record")); err != nil {
		t.Fatal(err)
	}
	s.permitsCallsOf(t, old, young)
	s.now = s.now.Add(message.DefaultWindow)
	for _, want := range []struct {
		younger int
		keys    []string
	}{{1, []string{"nonce." + young.Nonce, "nonce.none"}}, {0, []string{"nonce.none"}}} {
		younger, err := s.MoveAcceptances(t.Context(), bucket)
		if err != nil || younger != want.younger {
			t.Errorf("%d are younger, want %d; error %v", younger, want.younger, err)
		}
		keys, err := bucket.Keys(t.Context(), "nonce.*")
		slices.Sort(keys)
		slices.Sort(want.keys)
		if err != nil || !slices.Equal(keys, want.keys) {
			t.Errorf("remaining keys %v, want %v; error %v", keys, want.keys, err)
		}
		s.permitsCallsOf(t, old, young)
		s.now = s.now.Add(message.DefaultWindow)
	}
}

// openBucket opens bucket messages of a new broker.
func openBucket(t *testing.T) *stream.Bucket {
	t.Helper()
	client := brokertest.New(t).Connect()
	if err := client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	return brokertest.Bucket(t, client, stream.Messages)
}

// earlier makes the service accept a message, and stores its acceptance as the first version did.
func (s *gateway) earlier(t *testing.T, bucket *stream.Bucket) *wire.SignedMessage {
	t.Helper()
	m := s.signed(t, message.Human, "read")
	s.verified(t, m)
	value, revision, err := bucket.GetNewest(t.Context(), acceptanceKey(m.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Create(t.Context(), nonceKey(m.Nonce), value); err != nil {
		t.Fatal(err)
	}
	if err := bucket.Delete(t.Context(), acceptanceKey(m.ID), revision); err != nil {
		t.Fatal(err)
	}
	return m
}

// permitsCallsOf checks that calls are permitted by messages that were accepted.
func (s *gateway) permitsCallsOf(t *testing.T, accepted ...*wire.SignedMessage) {
	t.Helper()
	for _, m := range accepted {
		d, err := s.Call(t.Context(), &wire.CallRequest{AgentID: "a", SessionID: "s", MessageID: m.ID, ToolName: "search"})
		if err != nil || d.Outcome != message.Executed {
			t.Errorf("a call on message %s: %+v, error %v", m.ID, d, err)
		}
	}
}
