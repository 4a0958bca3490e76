package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
)

// check requires one chain of bundles for each session, and nothing else.
func (s *simulation) check() {
	files, sealed := map[string]bool{}, 0
	for key, traces := range s.sessions {
		covered, previous := uint64(0), ""
		for _, record := range s.parts(key) {
			if record.After != covered || record.Previous != previous {
				s.w.Wrong("%v, part %d is after %d and %.8s, the part before ends at %d and is %.8s", key, record.Part, record.After, record.Previous, covered, previous)
			}
			s.checkBundle(key, &record)
			covered, previous = record.Cut, record.SHA256
			files[record.File], sealed = true, sealed+1
		}
		if last := traces[len(traces)-1].row.Sequence; covered < last {
			s.w.Wrong("%v is sealed up to %d, its last trace is %d", key, covered, last)
		}
		if row := s.tables.sessions[key]; row.Status != store.SessionSealed {
			s.w.Wrong("%v: table sessions says %q: %s", key, row.Status, row.Reason)
		}
	}
	for file, err := range sealedFiles(s.cfg.bundleDir()) {
		if err != nil || !files[file] {
			s.w.Wrong("bundle %s belongs to no part: %v", file, err)
		}
	}
	s.checkLedger()
	t := &s.tables
	if len(t.bundles) != sealed || len(t.verdicts) != sealed || len(t.runs) != sealed || len(s.claims()) != sealed {
		s.w.Wrong("%d parts are sealed; there are %d bundles, %d verdicts, %d runs, %d claims", sealed, len(t.bundles), len(t.verdicts), len(t.runs), len(s.claims()))
	}
}

// parts returns the sealed parts of a session.
func (s *simulation) parts(key store.SessionKey) (parts []seal.Record) {
	for _, value := range s.seals.Revisions(seal.Key(key.AgentID, key.SessionID)) {
		record, err := seal.Decode(value)
		if err != nil {
			s.w.Wrong("%v: %v", key, err)
		}
		if record.State == seal.Sealed {
			if want := int64(len(parts) + 1); record.Part != want {
				s.w.Wrong("%v: part %d is sealed where part %d is due", key, record.Part, want)
			}
			parts = append(parts, record)
		}
	}
	return parts
}

// planned returns the plan of a sealed part.
func (s *simulation) planned(key store.SessionKey, sealed *seal.Record) (plan seal.Record) {
	for _, value := range s.seals.Revisions(seal.Key(key.AgentID, key.SessionID)) {
		record, err := seal.Decode(value)
		if err == nil && record.State == seal.Planned && record.Part == sealed.Part {
			plan = record
		}
	}
	return plan
}

// checkBundle compares a bundle with what its plan and the rows determine.
func (s *simulation) checkBundle(key store.SessionKey, sealed *seal.Record) {
	plan := s.planned(key, sealed)
	file, err := os.ReadFile(filepath.Join(s.cfg.bundleDir(), sealed.File))
	if err != nil {
		s.w.Wrong("%v, part %d: %v", key, sealed.Part, err)
		return
	}
	want, err := s.compose(key, plan)
	switch {
	case err != nil:
		s.w.Wrong("%v, part %d: %v", key, plan.Part, err)
	case plan.File != sealed.File || plan.Cut != sealed.Cut:
		s.w.Wrong("%v, part %d is sealed up to %d in %s, its plan says %d and %s", key, plan.Part, sealed.Cut, sealed.File, plan.Cut, plan.File)
	case !bytes.Equal(file, want.Bytes) || sealed.SHA256 != want.SHA256:
		s.w.Wrong("%v, part %d: the file has %d bytes, SHA-256 %.8s; its plan and the rows make %d, %.8s", key, plan.Part, len(file), sealed.SHA256, len(want.Bytes), want.SHA256)
	}
	claims := s.claims()[sealed.SHA256]
	claim := events.Claim{AgentID: key.AgentID, SessionID: key.SessionID, Part: sealed.Part, File: sealed.File, SHA256: sealed.SHA256}
	if !slices.Equal(claims, []events.Claim{claim}) {
		s.w.Wrong("%v, part %d: the ledger claims %v", key, sealed.Part, claims)
	}
}

// compose makes the bundle of a plan from the rows, without a stage.
func (s *simulation) compose(key store.SessionKey, plan seal.Record) (*aivs.Bundle, error) {
	part := seal.Part{AgentID: key.AgentID, SessionID: key.SessionID, Plan: plan, Cards: map[string][]byte{}}
	part.Traces = s.stored(func(t *store.StoredTrace) bool {
		return t.AgentID == key.AgentID && t.SessionID == key.SessionID && t.Sequence > plan.After && t.Sequence <= plan.Cut
	})
	if len(part.Traces) == 0 {
		return nil, errors.New("its plan has no trace")
	}
	for _, t := range part.Traces {
		part.Cards[t.CardID] = simulatedCard(t.AgentID)
	}
	contents, judge, err := seal.Read(&part, seal.Order(part.Traces), s.cfg.OutputLimit, s.rules)
	if err != nil {
		return nil, fmt.Errorf("read its rows: %w", err)
	}
	part.Verdict, _ = judge.Finish(plan.Session.Answers, time.Unix(plan.ExportedAt, 0))
	for i := range part.Verdict.Findings {
		finding := &part.Verdict.Findings[i]
		finding.Description, _ = redact.AllRules.Message(finding.Description)
	}
	in, err := seal.Compose(&part, contents, s.cfg.Generator, s.cfg.GeneratorURL)
	if err != nil {
		return nil, err
	}
	return aivs.Build(in, signing)
}
