package drift

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// recording is the recorded traces of one agent, in order, with an end mark on each session's last.
type recording struct {
	agent   string
	samples []Sample
}

// recordings reads the recorded sessions from outside the repository.
func recordings(t testing.TB) []recording {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "corpus")
	lines := func(name string) *bufio.Scanner {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("the recorded sessions are not next to the repository: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(bytes.NewReader(data))
		if filepath.Ext(name) == ".gz" {
			unzip, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			scanner = bufio.NewScanner(unzip)
		}
		scanner.Buffer(nil, 1<<20)
		return scanner
	}
	facts := map[string]CardFacts{}
	for cards := lines("cards.jsonl"); cards.Scan(); {
		card, err := schema.DecodeCard(bytes.Clone(cards.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		facts[card.CardID] = FactsOf(card)
	}
	var found []recording
	index, last := map[string]int{}, map[string]*Sample{}
	for traces := lines("traces.jsonl.gz"); traces.Scan(); {
		trace, err := schema.Admit("", bytes.Clone(traces.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		i, known := index[trace.AgentID]
		if !known {
			i = len(found)
			index[trace.AgentID] = i
			found = append(found, recording{agent: trace.AgentID, samples: make([]Sample, 0, 4096)})
		}
		found[i].samples = append(found[i].samples, SampleOf(trace, facts[trace.CardID]))
		last[trace.AgentID+trace.Context.SessionID] = &found[i].samples[len(found[i].samples)-1]
	}
	for _, x := range last {
		x.SessionEnd = true
	}
	return found
}

// On the recorded sessions of real agents, which nobody changed, the published rule raises 81 alerts
// and a baseline of sessions none.
func TestRecordedSessionsRaiseNoAlert(t *testing.T) {
	count := func(p Params) (opened, judged int) {
		for _, r := range recordings(t) {
			var s State
			for _, x := range r.samples {
				out := s.Step(x, p)
				if out.Status != StatusBaseline {
					judged++
				}
				if a := out.Alert; a != nil && a.State == schema.AlertOpened {
					opened++
					t.Logf("%s %s %s: %s", p.Mode, r.agent, x.TraceID, a.Summary)
				}
			}
		}
		return opened, judged
	}
	if opened, judged := count(DefaultParams()); opened != 0 || judged < 6000 {
		t.Errorf("%d alerts in %d traces under the default, want none", opened, judged)
	}
	if opened, _ := count(PublishedParams()); opened != 81 {
		t.Errorf("%d alerts under the published rule, want 81", opened)
	}
}
