package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/message"
)

// withPolicies gives the stage a file of policies, and no tokens.
func withPolicies(t testing.TB, text string) func(*setup) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(cfg *setup) { cfg.MessagePoliciesFile = path }
}

// Without tokens a message has no person's authority, whatever it requests. Mode warn reports
// that. Once there are tokens and mode enforce, such a message permits no call.
func TestAnonymousMessagesPermitNothing(t *testing.T) {
	warn := strings.ReplaceAll(policies, "enforce", "warn")
	open := start(t, withPolicies(t, warn))
	all := open.sign("", "shop", "run it, send it, pay it", message.AllIntents.Names()...)
	inferred := open.sign("", "shop", "Send the report.")
	for _, m := range []struct {
		source message.Source
		reason string
	}{{all.Source, all.Reason}, {inferred.Source, inferred.Reason}} {
		if m.source != message.Anonymous || m.reason != message.ReasonNotPermitted {
			t.Errorf("signed for %s, reason %q", m.source, m.reason)
		}
	}
	if inferred.Intents != 0 {
		t.Errorf("what is inferred permits %s", inferred.Intents)
	}
	if p := open.postJSON("/v1/messages", "", object{"agent_id": "shop", "session_id": "s", "text": "yes", "approves": all.ID}).problem(t); p.Word != "not_human" {
		t.Errorf("an approval: %+v", p)
	}
	if v := open.verify("shop", "s", all.Wrapped, all); v.Outcome != message.Accepted || v.Reason != message.ReasonNotPermitted || v.Source != message.Anonymous {
		t.Errorf("verified as %+v", v)
	}
	if d := open.call("shop", "s", all.ID, "read_file"); d.Mode != message.Warn || d.Reason != message.ReasonNotPermitted || d.Source != message.Anonymous {
		t.Errorf("a call in mode warn: %+v", d)
	}
	enforcing := onBrokerOf(t, open, gateway(t))
	for _, tool := range []string{"run", "read_file"} {
		blocked(t, enforcing.call("shop", "s", all.ID, tool), message.ReasonNotPermitted)
	}
	blocked(t, enforcing.call("shop", "s", inferred.ID, "read_file"), message.ReasonNoMessage)
}
