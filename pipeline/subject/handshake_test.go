package subject_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/subject"
)

func TestHandshakeSubject(t *testing.T) {
	for _, c := range []struct{ responder, requester, want string }{
		{"b", "a", "aap.handshake.b.a"},
		{"did:web:b.example", "a.b>*", "aap.handshake.did=3Aweb=3Ab=2Eexample.a=2Eb=3E=2A"},
	} {
		got := subject.Handshake(c.responder, c.requester)
		if got != c.want {
			t.Errorf("%q to %q: %s, want %s", c.requester, c.responder, got, c.want)
		}
		responder, requester, err := subject.ParseHandshake(got)
		if err != nil || responder != c.responder || requester != c.requester {
			t.Errorf("%s is read as %q to %q, error %v", got, requester, responder, err)
		}
	}
	for _, wrong := range []string{"", "aap.handshake.", "aap.handshake.b", "aap.handshake.b.", "aap.handshake..a", "aap.handshake.b.a.c", "aap.trace.b.a", "aap.handshake.b.=41"} {
		if responder, requester, err := subject.ParseHandshake(wrong); err == nil {
			t.Errorf("%q is read as %q to %q", wrong, requester, responder)
		}
	}
	if got := subject.HandshakesOf("did:a"); got != "aap.handshake.*.did=3Aa" {
		t.Errorf("HandshakesOf = %q", got)
	}
	if got := subject.Coherence("did:a"); got != "aap.coherence.did=3Aa" {
		t.Errorf("Coherence = %q", got)
	}
}
