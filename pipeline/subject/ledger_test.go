package subject_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/subject"
)

func TestLedgerSubject(t *testing.T) {
	for agent, want := range map[string]string{"a": "aap.ledger.a", "did:web:b.example": "aap.ledger.did=3Aweb=3Ab=2Eexample"} {
		if got := subject.Ledger(agent); got != want {
			t.Errorf("%s: %s, want %s", agent, got, want)
		}
		if back, err := subject.ParseLedger(want); err != nil || back != agent {
			t.Errorf("%s: %s, error %v", want, back, err)
		}
	}
	for _, wrong := range []string{"", "aap.ledger.", "aap.trace.a", "aap.ledger.a.b", "aap.ledger.=41"} {
		if agent, err := subject.ParseLedger(wrong); err == nil {
			t.Errorf("%q is the ledger of %q", wrong, agent)
		}
	}
}
