package subject_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/pipeline/subject"
)

func TestToken(t *testing.T) {
	for agent, want := range map[string]string{
		"agent-7_b":               "agent-7_b",
		"did:web:shop.example":    "did=3Aweb=3Ashop=2Eexample",
		"a*>.=%/ \x00":            "a=2A=3E=2E=3D=25=2F=20=00",
		"käfer":                   "k=C3=A4fer",
		"../../etc/passwd":        "=2E=2E=2F=2E=2E=2Fetc=2Fpasswd",
		strings.Repeat("ab.", 10): strings.Repeat("ab=2E", 10),
	} {
		if got := subject.Token(agent); got != want {
			t.Errorf("Token(%q) = %q, want %q", agent, got, want)
		}
	}
}

func TestAgentRefusesWhatTokenNeverWrites(t *testing.T) {
	for _, token := range []string{"", "a.b", "a b", "=", "=4", "=3a", "=41", "=5F", "=GG", "x=2", "ü", "a=2E."} {
		if agent, err := subject.Agent(token); err == nil {
			t.Errorf("Agent(%q) = %q, want an error", token, agent)
		}
	}
}

func TestTokenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agent := string(rapid.SliceOfN(rapid.Byte(), 1, 512).Draw(t, "agent"))
		checkRoundTrip(t, agent)
	})
}

func FuzzToken(f *testing.F) {
	f.Add("did:web:shopping.agent.example.com")
	f.Add("=41")
	f.Fuzz(func(t *testing.T, s string) {
		if s != "" {
			checkRoundTrip(t, s)
		}
		if agent, err := subject.Agent(s); err == nil && subject.Token(agent) != s {
			t.Fatalf("Agent(%q) = %q, whose token is %q", s, agent, subject.Token(agent))
		}
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

func checkRoundTrip(t failer, agent string) {
	token := subject.Token(agent)
	if back, err := subject.Agent(token); err != nil || back != agent {
		t.Fatalf("Agent(Token(%q)) = %q, %v", agent, back, err)
	}
	if i := strings.IndexFunc(token, func(r rune) bool { return !strings.ContainsRune(alphabet, r) }); i >= 0 {
		t.Fatalf("Token(%q) = %q: byte %d is not of the alphabet", agent, token, i)
	}
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-="

func TestSubjects(t *testing.T) {
	if got := subject.Trace("did:a"); got != "aap.trace.did=3Aa" {
		t.Errorf("Trace = %q", got)
	}
	if got := subject.Alert(subject.AlertDrift, "a.b"); got != "aap.alert.drift.a=2Eb" {
		t.Errorf("Alert = %q", got)
	} else if kind, err := subject.ParseAlert(got); err != nil || kind != subject.AlertDrift {
		t.Errorf("%s is read as %q, error %v", got, kind, err)
	}
	for _, wrong := range []string{"", "aap.alert.", "aap.alert.drift", "aap.alert.other.a", "aap.trace.a.b"} {
		if kind, err := subject.ParseAlert(wrong); err == nil {
			t.Errorf("%q is read as an alert about %q", wrong, kind)
		}
	}
	if got := subject.StoredTraces(3); got != "traces.3.>" {
		t.Errorf("StoredTraces = %q", got)
	}
}

func TestParseStored(t *testing.T) {
	partition, token, err := subject.ParseStored("traces.15.did=3Aa")
	if err != nil || partition != 15 || token != "did=3Aa" {
		t.Errorf("ParseStored = %d, %q, %v", partition, token, err)
	}
	for _, bad := range []string{"", "traces", "traces.1", "traces.1.", "traces.16.a", "traces.-1.a", "traces.x.a", "aap.trace.a"} {
		if _, _, err := subject.ParseStored(bad); err == nil {
			t.Errorf("ParseStored(%q) succeeded", bad)
		}
	}
}
