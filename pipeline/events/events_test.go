package events_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/schema"
)

var at = time.Date(2026, 2, 1, 12, 0, 0, 5, time.FixedZone("", 3600))

// written returns one event of each kind, under its name in docs/LEDGER.md.
func written() map[string]interface {
	Event() (ledger.Event, error)
} {
	return map[string]interface {
		Event() (ledger.Event, error)
	}{
		"BOOT":                  events.Boot{Service: "ingest", StartedAt: at, Version: "1"},
		"CLAIM":                 events.Claim{AgentID: "a", SessionID: "s", Part: 1, File: "f", SHA256: "ab"},
		"VERIFY decisions":      events.Decisions{SHA256: []schema.Digest{{1}}},
		"VERIFY findings":       events.Findings{Stream: at, Alerts: []events.Alert{{Sequence: 1, ID: "1", SHA256: schema.Digest{1}}}},
		"VERIFY self_check":     events.SelfCheck{StartedAt: at, FinishedAt: at, Good: true},
		"RETRACT":               events.Retract{Revocation: schema.Revocation{CardID: "c", AgentID: "a", RevokedAt: at.UTC(), Reason: "r"}},
		"META log_head":         events.LogHead{Origin: "log.example", Size: 1, Root: "AA=="},
		"META webhook_given_up": events.WebhookGivenUp{Endpoint: "security", WebhookID: "violation_1", Stream: at, Sequence: 7, Attempts: 3, Reason: "refused"},
		"META session_end":      events.SessionEnd{AgentID: "a", SessionID: "s", ThroughSequence: 7, Asked: events.Asked{By: "ana", From: events.FromAPI, At: at}},
		"META dead_letters":     events.DeadLetters{Mark: "resolved", SHA256: []schema.Digest{{1}}, Note: "n", Asked: events.Asked{By: "ana", From: events.FromConsole, At: at}},
		"META signing_key":      events.SigningKey{Purpose: "micro", KeyID: "1", PublicKey: "2"},
	}
}

// documented returns the members of each kind from the table of docs/LEDGER.md: `TYPE` or `TYPE`
// `kind`, then the members in the second column.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "LEDGER.md"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	words := func(cell string) (found []string) {
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			found = append(found, m[1])
		}
		return found
	}
	kinds := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		if name := strings.Join(words(cells[1]), " "); name != "" && name != "GENESIS" {
			kinds[name] = words(cells[2])
		}
	}
	return kinds
}

func TestEventsAreAsDocumented(t *testing.T) {
	told := documented(t)
	if got, want := slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(written())); !slices.Equal(got, want) {
		t.Errorf("docs/LEDGER.md has %v, services write %v", got, want)
	}
	for name, event := range written() {
		e, err := event.Event()
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(e.Data, &members); err != nil {
			t.Fatal(err)
		}
		kind, _ := members["kind"].(string)
		if got := strings.TrimSpace(string(e.Type) + " " + kind); got != name || e.ID == "" {
			t.Errorf("%s: it is a %s with id %q", name, got, e.ID)
		}
		if got, want := slices.Sorted(maps.Keys(members)), slices.Sorted(slices.Values(told[name])); !slices.Equal(got, want) {
			t.Errorf("%s has %v, docs/LEDGER.md says %v", name, got, want)
		}
		if again, err := event.Event(); err != nil || again.ID != e.ID {
			t.Errorf("%s: the ids %q and %q, error %v", name, e.ID, again.ID, err)
		}
		if strings.Contains(string(e.Data), "+01:00") {
			t.Errorf("%s: a time that is not in UTC: %s", name, e.Data)
		}
	}
}

// Different events have different ids.
func TestIDsDiffer(t *testing.T) {
	ids := map[string]bool{}
	for _, found := range []events.Findings{
		{Stream: at}, {Stream: at.Add(1)}, {Stream: at, Alerts: []events.Alert{{Sequence: 1}}}, {Stream: at, Alerts: []events.Alert{{Sequence: 2}}},
	} {
		e, err := found.Event()
		if err != nil {
			t.Fatal(err)
		}
		ids[e.ID] = true
	}
	for _, key := range []events.SigningKey{{Purpose: "micro", KeyID: "1"}, {Purpose: "log", KeyID: "1"}, {Purpose: "log", KeyID: "2"}} {
		e, err := key.Event()
		if err != nil {
			t.Fatal(err)
		}
		ids[e.ID] = true
	}
	if len(ids) != 7 {
		t.Errorf("%d ids for 7 events", len(ids))
	}
}

// The largest entry of findings fits in a ledger.
func TestLargestFindingsEventFits(t *testing.T) {
	const most, longest = 1000, 100 // limits of the verifier
	found := events.Findings{Stream: at}
	for i := range most {
		found.Alerts = append(found.Alerts, events.Alert{Sequence: 1<<63 + uint64(i), ID: strings.Repeat("<", longest)})
	}
	e, err := found.Event()
	if err != nil {
		t.Fatal(err)
	}
	const envelope = 1 << 10 // what the chain adds to an event
	if room := ledger.MaxDataBytes - envelope; len(e.Data) > room {
		t.Errorf("%d bytes, there is room for %d", len(e.Data), room)
	}
}

// The ledger is public: it contains no secret of an id or of a reason.
func TestEventsHideSecrets(t *testing.T) {
	for _, e := range []interface {
		Event() (ledger.Event, error)
	}{
		events.Claim{AgentID: `{"token":"hunter2"}`, SessionID: "s?access_token=hunter2", SHA256: "ab"},
		events.Retract{Revocation: schema.Revocation{CardID: "c", RevokedAt: at.UTC(), Reason: "leaked: password=hunter2"}},
	} {
		event, err := e.Event()
		if err != nil || strings.Contains(string(event.Data), "hunter2") || !strings.Contains(string(event.Data), "[REDACTED]") {
			t.Errorf("%s, %v", event.Data, err)
		}
	}
	if c := (events.Claim{AgentID: "a", SessionID: "s"}); c.Shown() != c {
		t.Errorf("%+v became %+v", c, c.Shown())
	}
}
