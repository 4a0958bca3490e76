package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/client/mcprecorder"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// mcpCard is the card that recorded traces name.
type mcpCard struct {
	id      string
	agent   string
	missing bool // it is to be registered
	started time.Time
}

// askPatience bounds how long the start waits for an ingest that does not answer.
const askPatience = 3 * time.Second

// findCard finds the card of the agent: the one of the command line, or the one in force. If
// ingest does not answer, it is the one of the last time.
func (c *mcpCommand) findCard(ctx context.Context, where *client.Publisher) (*mcpCard, error) {
	card := &mcpCard{id: c.Card, agent: c.Agent, started: time.Now()}
	if c.Card != "" {
		return card, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	once := *where
	once.Patience = time.Nanosecond // a client waits for its server
	list, err := once.Cards(ctx, c.Agent)
	if refused, ok := errors.AsType[*client.Problem](err); ok && refused.Code != http.StatusServiceUnavailable {
		return nil, fmt.Errorf("find the card of agent %s: %w; or name the card with --card", c.Agent, tokenHint(err))
	}
	if err != nil {
		if card.id = remembered(c.Agent); card.id == "" {
			return nil, fmt.Errorf("the card of agent %s is not known, because ingest does not answer (%w): start it (plumbline up), or name the card with --card", c.Agent, err)
		}
		return card, nil
	}
	if i := slices.IndexFunc(list, func(l client.ListedCard) bool { return l.State == client.CardInForce }); i >= 0 {
		card.id = list[i].CardID
		remember(c.Agent, card.id)
		return card, nil
	}
	if !c.Register {
		return nil, usagef("agent %s has no card in force: register one (plumbline card put card.json), or add --register: plumbline then registers a card that permits the tools that the server offers", c.Agent)
	}
	card.id, card.missing = fmt.Sprintf("ac-mcp-%s-%d", c.Agent, card.started.Unix()), true
	return card, nil
}

// register registers the card with the tools that the server offers.
func (card *mcpCard) register(ctx context.Context, where *client.Publisher, tools []string, say func(string)) {
	raw, err := mcprecorder.Card(card.id, card.agent, tools, card.started)
	if err == nil {
		_, err = where.PutCard(ctx, card.id, raw)
	}
	if err != nil {
		say(fmt.Sprintf("the agent's card could not be registered, so its traces cannot be judged: %v", tokenHint(err)))
		return
	}
	remember(card.agent, card.id)
	say(fmt.Sprintf("registered card %s, which permits %s: read it with plumbline card get %s", card.id, strings.Join(tools, ", "), card.id))
}

// memory returns the file that keeps the id of an agent's card for starts without ingest.
func memory(agent string) (string, error) {
	state, err := machine.StateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(state, "cards", subject.Token(agent)), nil
}

// remember keeps the id of an agent's card. Without it, only a start without ingest fails.
func remember(agent, card string) {
	path, err := memory(agent)
	if err == nil && durable.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = durable.WriteFile(path, []byte(card), 0o600)
	}
}

func remembered(agent string) string {
	path, err := memory(agent)
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
