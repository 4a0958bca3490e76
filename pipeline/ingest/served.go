package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/schema"
)

// cachePublic makes caches of public content ask again after a minute. For that long a revoked
// card may look valid.
const cachePublic = "public, max-age=60"

// getCurrentCard answers with the current card of the agent that the Host header identifies, or
// else of the agent in the query (AAP sections 3.3 and 11.2). The Host comes first: what a host
// serves under a well-known address is its own, whatever a link to it contains.
func (s *server) getCurrentCard(w http.ResponseWriter, r *http.Request) int {
	now := time.Now()
	asked := r.URL.Query().Get("agent_id")
	for _, agent := range append(s.cards.AgentsOfHost(r.Host), asked) {
		card, err := s.cards.CurrentCard(r.Context(), agent, now)
		if err == nil {
			return serveCard(w, r, card, cachePublic)
		}
		if !errors.Is(err, cards.ErrUnknown) {
			return s.failure("look up card", err).write(w)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	return problemf(http.StatusNotFound, "no_card", "%s", s.whyNoCard(r.Host, asked, now)).write(w)
}

// inDID percent-encodes a host and its port as did:web requires.
var inDID = strings.NewReplacer(":", "%3A", "[", "%5B", "]", "%5D")

// whyNoCard returns a text that lists what was tried.
func (s *server) whyNoCard(host, asked string, now time.Time) string {
	host = clip(host)
	var tried []string
	for _, agent := range s.cards.AgentsOfHost(host) {
		tried = append(tried, fmt.Sprintf("host %q is agent %q: %s", host, clip(agent), s.states(agent, now)))
	}
	if len(tried) == 0 {
		tried = append(tried, fmt.Sprintf("host %q: no agent with a card is did:web:%s or an http(s) URL of it", host, inDID.Replace(host)))
	}
	if asked == "" {
		tried = append(tried, "no agent_id was given: ask with ?agent_id=AGENT")
	} else {
		tried = append(tried, fmt.Sprintf("agent_id %q: %s", clip(asked), s.states(asked, now)))
	}
	return "there is no current card; " + strings.Join(tried, "; ")
}

// states describes the states of an agent's cards.
func (s *server) states(agent string, now time.Time) string {
	known := s.cards.OfAgent(agent)
	if len(known) == 0 {
		return "it has registered no card"
	}
	counts := map[cards.State]int{}
	for _, card := range known {
		counts[s.cards.State(card, now)]++
	}
	return fmt.Sprintf("of its %d cards %d are revoked, %d expired and %d not yet issued",
		len(known), counts[cards.Revoked], counts[cards.Expired], counts[cards.NotYetIssued])
}

// getCard answers with one card in any state.
func (s *server) getCard(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	card, p := s.cardFor(r, grant)
	if p != nil {
		return p.write(w)
	}
	return serveCard(w, r, card, "private, max-age=60")
}

// serveCard answers with the registered bytes.
func serveCard(w http.ResponseWriter, r *http.Request, card *cards.Card, caching string) int {
	w.Header().Set("Content-Type", cardType(card.Card))
	w.Header().Set("ETag", `"`+card.Card.Digest.String()+`"`)
	w.Header().Set("Cache-Control", caching)
	return serve(w, r, card.Card.Raw)
}

// cardType returns a card's media type, with its version if that is a version of AAP. Cards of
// the 2.x shape number their versions differently.
func cardType(card *schema.Card) string {
	if !versionForm.MatchString(card.Version) {
		return mediaTypeCard
	}
	return mime.FormatMediaType(mediaTypeCard, map[string]string{"version": card.Version})
}

// serve answers a conditional request. The header ETag must be set.
func serve(w http.ResponseWriter, r *http.Request, content []byte) int {
	noted := &codeNoter{ResponseWriter: w}
	http.ServeContent(noted, r, "", time.Time{}, bytes.NewReader(content))
	return noted.code
}

// codeNoter records the code of an answer.
type codeNoter struct {
	http.ResponseWriter
	code int
}

// WriteHeader records the code.
func (n *codeNoter) WriteHeader(code int) {
	n.code = code
	n.ResponseWriter.WriteHeader(code)
}

// listedRevocation is a revocation in the public list.
type listedRevocation struct {
	CardID    string    `json:"card_id"`
	RevokedAt time.Time `json:"revoked_at"`
	Reason    string    `json:"reason"`
}

// getRevocations answers with every revoked card (AAP sections 9.2 and 11.2), in order of time.
func (s *server) getRevocations(w http.ResponseWriter, r *http.Request) int {
	list := struct {
		Revoked []listedRevocation `json:"revoked"`
	}{[]listedRevocation{}}
	for _, revocation := range s.cards.Revocations() {
		list.Revoked = append(list.Revoked, listedRevocation{revocation.CardID, revocation.RevokedAt, revocation.Reason})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return s.failure("list revocations", err).write(w)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", `"`+schema.DigestOf(text).String()+`"`)
	w.Header().Set("Cache-Control", cachePublic)
	return serve(w, r, append(text, '\n'))
}

// listCards answers with the cards of the agents that the grant covers, or of the agent in the
// query.
func (s *server) listCards(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	var asked []*cards.Entry
	if agent := r.URL.Query().Get("agent_id"); agent != "" {
		if p := maySpeakFor(agent, grant); p != nil {
			return p.write(w)
		}
		asked = s.cards.OfAgent(agent)
	} else {
		asked = slices.DeleteFunc(s.cards.All(), func(card *cards.Entry) bool { return !grant.SpeaksFor(card.AgentID) })
	}
	return writeJSON(w, http.StatusOK, map[string][]cards.Listing{"cards": s.cards.List(asked, time.Now())})
}
