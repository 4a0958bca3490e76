package handshake

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// Peers are services that are asked for the card of an initiator whose agent is not registered
// here (AAP section 3.3: GET /.well-known/alignment-card.json). The operator lists them, so
// nobody else can choose where a request is sent.
type Peers struct {
	urls   []string
	client http.Client
}

const (
	peerPatience    = 3 * time.Second // for one document of one peer
	mostRevocations = 64 << 20        // size of a peer's list of revoked cards, in bytes
)

// NewPeers returns the peers at the addresses: https://, or http:// on loopback only.
func NewPeers(urls []string) (*Peers, error) {
	p := &Peers{}
	p.client.Timeout = peerPatience
	p.client.Transport = &http.Transport{ // requests are rare: no connection is kept
		TLSClientConfig: &tls.Config{MinVersion: transport.MinimumTLS}, DisableKeepAlives: true,
	}
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, address := range urls {
		u, err := url.Parse(address)
		secure := err == nil && (u.Scheme == "https" || u.Scheme == "http" && transport.Loopback(u.Host))
		if !secure || u.Host == "" {
			return nil, fmt.Errorf("%q: want https://host:port, or http:// on loopback", address)
		}
		p.urls = append(p.urls, strings.TrimSuffix(address, "/"))
	}
	return p, nil
}

// Card returns an agent's card with an id, from the first peer at which it is the card in force,
// or nil if there is no such peer. It also returns since when that peer has revoked the card. The
// error joins the errors of the peers that could not be asked.
func (p *Peers) Card(ctx context.Context, agentID, cardID string) (card *schema.Card, revoked time.Time, err error) {
	var faults []error
	for _, peer := range p.urls {
		card, err := p.cardOf(ctx, peer, agentID)
		if err == nil && card != nil && card.CardID == cardID {
			revoked, err = p.revokedAt(ctx, peer, cardID)
			if err == nil {
				return card, revoked, nil
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("ask %s for card %q: %w", peer, cardID, err))
		}
	}
	return nil, time.Time{}, errors.Join(faults...)
}

// cardOf asks one peer for an agent's card in force. It refuses the card of another agent.
func (p *Peers) cardOf(ctx context.Context, peer, agentID string) (*schema.Card, error) {
	raw, err := p.get(ctx, peer+"/.well-known/alignment-card.json?agent_id="+url.QueryEscape(agentID), schema.MaxCardBytes)
	if raw == nil || err != nil {
		return nil, err
	}
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return nil, err
	}
	if card.AgentID != agentID { // the card of the peer's own host
		return nil, nil
	}
	return card, nil
}

func (p *Peers) revokedAt(ctx context.Context, peer, cardID string) (revoked time.Time, err error) {
	raw, err := p.get(ctx, peer+"/.well-known/alignment-card-revocations.json", mostRevocations)
	if raw == nil || err != nil {
		return revoked, err
	}
	var list struct {
		Revoked []schema.Revocation `json:"revoked"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return revoked, err
	}
	i := slices.IndexFunc(list.Revoked, func(r schema.Revocation) bool { return r.CardID == cardID })
	if i >= 0 {
		revoked = list.Revoked[i].RevokedAt
	}
	return revoked, nil
}

// get returns a document, or nil if there is none.
func (p *Peers) get(ctx context.Context, address string, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return nil, nil
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %s", answer.Status)
	case int64(len(body)) > most:
		return nil, fmt.Errorf("the document is larger than %d bytes", most)
	}
	return body, nil
}
