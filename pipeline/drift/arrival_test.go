package drift

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// diary is the traces of one agent under a card, one a second of the past, in sessions of six that mark their end.
type diary struct {
	agent, card string
	at          time.Time
	sent        int
}

// write returns the next traces, of which each has this action type.
func (d *diary) write(traces int, action string) (records []stream.Record) {
	for range traces {
		session := `"session_id":"s-` + fmt.Sprint(d.sent/6) + `"`
		raw := pipelinetest.Trace(fmt.Sprint("tr-", d.sent), d.agent, d.card, "s", d.at.Format(time.RFC3339Nano), "search").Data
		raw = bytes.Replace(raw, []byte(`"type":"execute"`), []byte(`"type":"`+action+`"`), 1)
		if d.sent%6 == 5 {
			session += `,"metadata":{"session_end":true}`
		}
		records = append(records, pipelinetest.Record(d.agent, bytes.Replace(raw, []byte(`"session_id":"s"`), []byte(session), 1)))
		d.at, d.sent = d.at.Add(time.Second), d.sent+1
	}
	return records
}

// The same traces in another order of arrival within the lateness give the same baselines, points, alerts and alert
// ids: a change that opens, is updated and closes.
func TestOrderOfArrivalChangesNoAlert(t *testing.T) {
	began := time.Now().Add(-3 * time.Hour)
	of := fleet.New(fleet.Config{Seed: 1, Agents: 1, Traces: 1, Start: began}).Cards()[0]
	measured := func(seed uint64) (lines []string) {
		s := newScene(t, fleet.Config{Seed: 1, Agents: 1, Traces: 1})
		s.cfg.Lateness = 5 * time.Second
		s.Register(t, of.Raw)
		d := diary{agent: of.AgentID, card: of.CardID, at: began}
		records := slices.Concat(d.write(72, "execute"), d.write(40, "deny"), d.write(240, "execute"))
		if seed > 0 {
			random := rand.New(rand.NewPCG(seed, 1))
			random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		}
		s.Publish(t, records...)
		s.watch()
		s.checkReplay()
		for _, line := range s.stored() {
			if !strings.HasPrefix(line, "loop ") { // a loop names the place in the stream of its newest trace
				lines = append(lines, line)
			}
		}
		return lines
	}
	want := measured(0)
	alerts := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return !strings.HasPrefix(line, "alert ") })
	if len(alerts) < 4 || len(want) < 352 {
		t.Fatalf("%d lines, of which %d are events of alerts", len(want), len(alerts))
	}
	compare(t, measured(1), want)
}

// An agent that names another card while its alert is open has a series of its own under that card, which learns. The
// alert stays open and listed, and closes where the agent names the first card again and does as before.
func TestCardReplacedWhileAnAlertIsOpen(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 1, Agents: 1, Traces: 1})
	of := s.fleet.Cards()[0]
	d := diary{agent: of.AgentID, card: of.CardID, at: time.Now().Add(-3 * time.Hour)}
	s.Publish(t, slices.Concat(d.write(72, "execute"), d.write(40, "deny"))...)
	s.watch()
	events := s.events()
	newest := &events[len(events)-1]
	s.expectListed(of.AgentID, "open", newest)

	d.card = of.CardID + "-next"
	s.Register(t, bytes.Replace(of.Raw, []byte(`"`+of.CardID+`"`), []byte(`"`+d.card+`"`), 1))
	s.Publish(t, d.write(30, "deny")...)
	s.watch()
	if again := s.events(); len(again) != len(events) {
		t.Errorf("%d events after the card was replaced, want the %d from before: %+v", len(again), len(events), again[len(again)-1])
	}
	s.expectListed(of.AgentID, "open", newest)
	if n := s.Number(t, "SELECT count() FROM visible_drift_points WHERE card_id = '"+d.card+"' AND status = 'baseline'"); n != 30 {
		t.Errorf("%d points of the new series are of its baseline, want all 30", n)
	}
	// Under the old card, the series continues, and its alert closes.
	d.card = of.CardID
	s.Publish(t, d.write(240, "execute")...)
	s.watch()
	events = s.events()
	if last := events[len(events)-1]; last.State != schema.AlertClosed || last.AlertID != newest.AlertID {
		t.Errorf("the last event is %+v", last)
	}
	s.expectListed(of.AgentID, "closed", &events[len(events)-1])
	s.checkReplay()
}
