package ingest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/a2a"
)

// agentCards holds A2A agent cards by agent_id. They are served with the current Alignment Card
// of their agents inside (AAP section 3.3).
type agentCards map[string][]byte

// readAgentCards reads the files of entries AGENT=FILE. The error lists every entry that cannot
// be served.
func readAgentCards(entries []string) (agentCards, error) {
	served := agentCards{}
	var faults []error
	for _, entry := range entries {
		agent, file, ok := strings.Cut(entry, "=")
		if !ok || agent == "" || file == "" {
			faults = append(faults, fmt.Errorf("a2a_agent_cards: %q: want AGENT=FILE", entry))
			continue
		}
		raw, err := readAgentCard(file)
		if err == nil && served[agent] != nil {
			err = errors.New("another file is given for this agent")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("a2a_agent_cards: agent %q, file %s: %w", agent, file, err))
		}
		served[agent] = raw
	}
	return served, errors.Join(faults...)
}

// readAgentCard reads an agent card into which a block can be written.
func readAgentCard(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	signed, err := a2a.Signed(raw)
	if err != nil {
		return nil, err
	}
	if signed {
		return nil, errors.New("the agent card is signed, and a block written into it would break its signatures: " +
			"write the block with plumbline card a2a embed, sign the result, and serve it yourself")
	}
	return raw, nil
}

// getAgentCard answers with the A2A agent card of the agent that the Host header identifies, or
// else of the agent in the query. Its alignment block holds the agent's current Alignment Card.
func (s *server) getAgentCard(w http.ResponseWriter, r *http.Request) int {
	now, asked := time.Now(), r.URL.Query().Get("agent_id")
	for _, agent := range append(s.cards.AgentsOfHost(r.Host), asked) {
		raw, served := s.agentCards[agent]
		if !served {
			continue
		}
		card, err := s.cards.CurrentCard(r.Context(), agent, now)
		if errors.Is(err, cards.ErrUnknown) {
			continue
		}
		if err != nil {
			return s.failure("look up card", err).write(w)
		}
		whole, err := a2a.Embed(raw, card.Card.Raw)
		if err != nil { // cannot happen: both were decoded before
			s.env.Log.Error("cannot embed an alignment card", "agent", clip(agent), "error", err)
			return problemf(http.StatusInternalServerError, "internal", "the agent card cannot be made").write(w)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"`+schema.DigestOf(whole).String()+`"`)
		w.Header().Set("Cache-Control", cachePublic)
		return serve(w, r, whole)
	}
	w.Header().Set("Cache-Control", "no-store")
	return problemf(http.StatusNotFound, "no_agent_card", "no A2A agent card is served for this host or agent_id (setting a2a_agent_cards); %s",
		s.whyNoCard(r.Host, asked, now)).write(w)
}
