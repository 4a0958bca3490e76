package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/a2a"
	jsonschema "github.com/plumbline/plumbline/schema/json"
	"github.com/plumbline/plumbline/schema/openapi"
)

// cachePublic makes caches of public content ask again after a minute. For that long a revoked
// card may look valid.
const cachePublic = "public, max-age=60"

// getCurrentCard answers with the current card of the agent that the Host header identifies, or
// else of the agent in the query (AAP sections 3.3 and 11.2). The Host comes first: what a host
// serves under a well-known address is its own, whatever a link to it contains.
func (a *API) getCurrentCard(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
	now, asked := time.Now(), r.URL.Query().Get("agent_id")
	for _, agent := range append(a.Cards.AgentsOfHost(r.Host), asked) {
		card, err := a.Cards.CurrentCard(r.Context(), agent, now)
		if err == nil {
			return serveCard(w, r, card, cachePublic), nil
		}
		if !errors.Is(err, cards.ErrUnknown) {
			return 0, fmt.Errorf("look up card: %w", err)
		}
	}
	return 0, problem.New(http.StatusNotFound, "no_card", "%s", a.whyNoCard(r.Host, asked, now)).With("Cache-Control", "no-store")
}

// inDID percent-encodes a host and its port as did:web requires.
var inDID = strings.NewReplacer(":", "%3A", "[", "%5B", "]", "%5D")

// whyNoCard returns a text that lists what was tried.
func (a *API) whyNoCard(host, asked string, now time.Time) string {
	host = clip(host)
	var tried []string
	for _, agent := range a.Cards.AgentsOfHost(host) {
		tried = append(tried, fmt.Sprintf("host %q is agent %q: %s", host, clip(agent), a.states(agent, now)))
	}
	if len(tried) == 0 {
		tried = append(tried, fmt.Sprintf("host %q: no agent with a card is did:web:%s or an http(s) URL of it", host, inDID.Replace(host)))
	}
	if asked == "" {
		tried = append(tried, "no agent_id was given: ask with ?agent_id=AGENT")
	} else {
		tried = append(tried, fmt.Sprintf("agent_id %q: %s", clip(asked), a.states(asked, now)))
	}
	return "there is no current card; " + strings.Join(tried, "; ")
}

// states describes the states of an agent's cards.
func (a *API) states(agent string, now time.Time) string {
	known := a.Cards.OfAgent(agent)
	if len(known) == 0 {
		return "it has registered no card"
	}
	counts := map[cards.State]int{}
	for _, card := range known {
		counts[a.Cards.State(card, now)]++
	}
	return fmt.Sprintf("of its %d cards %d are revoked, %d expired and %d not yet issued",
		len(known), counts[cards.Revoked], counts[cards.Expired], counts[cards.NotYetIssued])
}

// serveCard answers with the registered bytes. The media type states the card's version if that is
// a version of AAP; cards of the 2.x shape number their versions differently.
func serveCard(w http.ResponseWriter, r *http.Request, card *cards.Card, caching string) int {
	mediaType := request.TypeCard
	if request.VersionForm.MatchString(card.Card.Version) {
		mediaType = mime.FormatMediaType(mediaType, map[string]string{"version": card.Card.Version})
	}
	return serve(w, r, mediaType, caching, card.Card.Digest, card.Card.Raw)
}

// serve answers a request that may be conditional. digest identifies the content.
func serve(w http.ResponseWriter, r *http.Request, mediaType, caching string, digest schema.Digest, content []byte) int {
	return request.ServeContent(w, r, mediaType, caching, digest, bytes.NewReader(content))
}

// listedRevocation is a revocation in the public list.
type listedRevocation struct {
	CardID    string    `json:"card_id"`
	RevokedAt time.Time `json:"revoked_at"`
	Reason    string    `json:"reason"`
}

// getRevocations answers with every revoked card (AAP sections 9.2 and 11.2), in order of time.
func (a *API) getRevocations(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
	list := struct {
		Revoked []listedRevocation `json:"revoked"`
	}{[]listedRevocation{}}
	for _, revocation := range a.Cards.Revocations() {
		list.Revoked = append(list.Revoked, listedRevocation{revocation.CardID, revocation.RevokedAt, revocation.Reason})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return 0, fmt.Errorf("list revocations: %w", err)
	}
	return serve(w, r, request.TypeJSON, cachePublic, schema.DigestOf(text), append(text, '\n')), nil
}

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
		raw, err := os.ReadFile(file)
		signed := false
		if err == nil {
			signed, err = a2a.Signed(raw)
		}
		switch {
		case err != nil:
		case signed:
			err = errors.New("the agent card is signed, and a block written into it would break its signatures: " +
				"write the block with plumbline card a2a embed, sign the result, and serve it yourself")
		case served[agent] != nil:
			err = errors.New("another file is given for this agent")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("a2a_agent_cards: agent %q, file %s: %w", agent, file, err))
			continue
		}
		served[agent] = raw
	}
	return served, errors.Join(faults...)
}

// getAgentCard answers with the A2A agent card of the agent that the Host header identifies, or
// else of the agent in the query. Its alignment block holds the agent's current Alignment Card.
func (a *API) getAgentCard(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
	now, asked := time.Now(), r.URL.Query().Get("agent_id")
	for _, agent := range append(a.Cards.AgentsOfHost(r.Host), asked) {
		raw, served := a.Files.agentCards[agent]
		if !served {
			continue
		}
		card, err := a.Cards.CurrentCard(r.Context(), agent, now)
		if errors.Is(err, cards.ErrUnknown) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("look up card: %w", err)
		}
		whole, err := a2a.Embed(raw, card.Card.Raw)
		if err != nil { // cannot happen: both were decoded before
			return 0, fmt.Errorf("embed the alignment card of agent %q: %w", clip(agent), err)
		}
		return serve(w, r, request.TypeJSON, cachePublic, schema.DigestOf(whole), whole), nil
	}
	return 0, problem.New(http.StatusNotFound, "no_agent_card", "no A2A agent card is served for this host or agent_id (setting a2a_agent_cards); %s",
		a.whyNoCard(r.Host, asked, now)).With("Cache-Control", "no-store")
}

// schemaEntry is one line of the list of JSON Schemas.
type schemaEntry struct {
	Name  string `json:"name"`
	ID    string `json:"id"` // its $id
	Title string `json:"title"`
	URL   string `json:"url"`
}

func listSchemas(w http.ResponseWriter, _ *http.Request, _ auth.Grant) (int, error) {
	list := struct {
		Schemas []schemaEntry `json:"schemas"`
	}{}
	for _, d := range jsonschema.Documents() {
		list.Schemas = append(list.Schemas, schemaEntry{d.Name, d.ID, d.Title, "/v1/schemas/" + d.Name})
	}
	return problem.WriteJSON(w, http.StatusOK, list), nil
}

func getSchema(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
	d, found := jsonschema.Lookup(r.PathValue("name"))
	if !found {
		return 0, problem.New(http.StatusNotFound, "unknown", "there is no schema of this name: GET /v1/schemas lists them")
	}
	return serve(w, r, jsonschema.MediaType, "public, max-age=3600", schema.DigestOf(d.Text), d.Text), nil
}

// getOpenAPI answers with the description of all routes of ingest.
func getOpenAPI(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
	return serve(w, r, openapi.MediaType, "public, max-age=3600", schema.DigestOf(openapi.Text), openapi.Text), nil
}
