package checker

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/store"
)

// checkChains: the bundles of a session form one chain, and each trace is sealed in at most
// one of them.
func (k *checker) checkChains(bundles []store.Bundle) {
	type record struct{ agent, trace string }
	stored, sealed := map[record]int{}, map[record]int{}
	for _, row := range k.traces {
		stored[record{row.AgentID, row.TraceID}]++ // several in a conflict
	}
	sessions := map[store.SessionKey][]*store.Bundle{}
	for i := range bundles {
		b := &bundles[i]
		key := store.SessionKey{AgentID: b.AgentID, SessionID: b.SessionID}
		sessions[key] = append(sessions[key], b)
		for _, id := range b.TraceIDs {
			sealed[record{b.AgentID, id}]++
		}
	}
	for _, parts := range sessions {
		k.checkChain(parts)
	}
	for r, n := range sealed {
		if stored[r] == 0 { // checkDelivery counts it as lost if it was acknowledged
			k.Errorf("chains: trace %s of agent %s is sealed and not stored", r.trace, r.agent)
		}
		if n > max(stored[r], 1) {
			k.seen.Doubled++
			k.Errorf("chains: trace %s of agent %s is sealed %d times and stored %d times", r.trace, r.agent, n, stored[r])
		}
	}
}

// checkChain checks that a session's bundles are parts 1, 2, …, each linked to the previous
// one, over traces that arrived after the previous one's.
func (k *checker) checkChain(parts []*store.Bundle) {
	slices.SortFunc(parts, func(a, b *store.Bundle) int { return cmp.Compare(a.Part, b.Part) })
	var before store.Bundle
	for _, b := range parts {
		switch {
		case b.Part == before.Part:
			k.seen.Doubled++
			k.Errorf("chains: session %q of agent %s has part %d twice: %s and %s", b.SessionID, b.AgentID, b.Part, before.SHA256, b.SHA256)
			continue
		case b.Part != before.Part+1:
			k.Errorf("chains: session %q of agent %s has no part %d before part %d", b.SessionID, b.AgentID, before.Part+1, b.Part)
		case b.Part > 1 && b.PreviousSHA256 != before.SHA256.String(), b.Part == 1 && b.PreviousSHA256 != "":
			k.Errorf("chains: part %d of session %q of agent %s continues %q, which is not the part before", b.Part, b.SessionID, b.AgentID, b.PreviousSHA256)
		case b.FirstSequence <= before.LastSequence:
			k.Errorf("chains: parts %d and %d of session %q of agent %s overlap at sequence %d", before.Part, b.Part, b.SessionID, b.AgentID, b.FirstSequence)
		}
		before = *b
	}
}

// checkClaims: the ledger claims each bundle and nothing else, and no part of a session as
// two bundles. The same claim may occur twice: a crash may repeat an event after the
// broker has forgotten its id.
func (k *checker) checkClaims(bundles []store.Bundle) {
	sealed, claimed := map[string]bool{}, map[string]bool{}
	for i := range bundles {
		sealed[bundles[i].SHA256.String()] = true
	}
	type part struct {
		agent, session string
		number         int64
	}
	parts := map[part]string{}
	err := opledger.Walk(k.Kept.Ledger, func(e *opledger.Placed) error {
		if e.Type != ledger.Claim {
			return nil
		}
		event, err := e.Event()
		if err != nil {
			return err
		}
		var c events.Claim
		if err := json.Unmarshal(event.Data, &c); err != nil {
			return err
		}
		of := part{c.AgentID, c.SessionID, c.Part}
		if other, ok := parts[of]; ok && other != c.SHA256 {
			k.seen.Doubled++
			k.Errorf("claims: part %d of session %q of agent %s is claimed as two bundles, %s and %s", c.Part, c.SessionID, c.AgentID, other, c.SHA256)
		}
		parts[of] = c.SHA256
		claimed[c.SHA256] = true
		if !sealed[c.SHA256] {
			k.Errorf("claims: the ledger claims bundle %s, and there is no row of it", c.SHA256)
		}
		return nil
	}, func(file string, fault error) { k.Errorf("claims: %s: %v", file, fault) })
	if err != nil {
		k.Fatal(err)
	}
	for sha256 := range sealed {
		if !claimed[sha256] {
			k.Errorf("claims: the ledger does not claim bundle %s", sha256)
		}
	}
}
