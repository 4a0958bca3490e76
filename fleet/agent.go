package fleet

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// role decides what is planted on an agent.
type role uint8

const (
	ordinary  role = iota
	drifting       // its behaviour drifts, and nothing else is planted on it
	renewed        // some of its traces name an older card that expires within the window
	replaced       // some of its traces name an older card that never expires
	novice         // its card is so new that its first trace may be older
	withdrawn      // its older card is revoked when publishing begins
)

// The shares of the roles, in agents per thousand; at least one agent if the fleet has ten.
var shares = [...]struct {
	role     role
	perMille int
}{{drifting, 60}, {renewed, 30}, {replaced, 30}, {novice, 20}, {withdrawn, 20}}

// agent is one member of the fleet.
type agent struct {
	id    string
	trade *archetype
	role  role
	card  card // in force
	older card // of a renewed, replaced or withdrawn agent
	slide slide
	key   ed25519.PrivateKey // signs its traces; nil: they are unsigned

	first, count int // the range of its steps
}

// card is the plan of an Alignment Card.
type card struct {
	id      string
	issued  time.Time
	expires time.Time // zero: never
}

// Times of the issue of cards, before Start.
const (
	cardAge  = 5 * 24 * time.Hour
	olderAge = 90 * 24 * time.Hour
)

// expiryAge is the time before Start at which a renewed agent's older card expires.
func (f *Fleet) expiryAge() time.Duration { return f.cfg.Window / 2 }

// noviceAge is the time before Start at which a novice's only card was issued.
func (f *Fleet) noviceAge() time.Duration { return Margin + f.span()*5/6 }

// hire fills f.agents. Trades are assigned in turn. Roles are assigned to the first agents of
// the list, so each role occurs in several trades.
func (f *Fleet) hire() {
	f.agents = make([]agent, f.cfg.Agents)
	for i := range f.agents {
		a := &f.agents[i]
		a.trade = trades()[i%len(trades())]
		a.id = agentID(a.trade, i)
		a.card = card{id: cardID(f.salt, 2*i), issued: f.cfg.Start.Add(-cardAge)}
	}
	next := 0
	for _, s := range shares {
		count := max(1, f.cfg.Agents*s.perMille/1000)
		if f.cfg.Agents < 10 {
			count = 0
		}
		for range count {
			f.assign(next, s.role)
			next++
		}
	}
	if f.cfg.Unsigned {
		return
	}
	for i := range f.agents {
		if a := &f.agents[i]; a.role == ordinary && i%signEvery == 0 && envelope(i) {
			a.key = signingKey(f.salt, i)
		}
	}
}

// signEvery makes about every eighth of the ordinary agents sign its traces. The fleet's cards have
// keys only in the 0.1.0 shape.
const signEvery = 5

// signingKey returns the key of agent i; another salt gives another key.
func signingKey(salt uint64, i int) ed25519.PrivateKey {
	seed := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, salt), uint64(i)))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (f *Fleet) assign(i int, r role) {
	a := &f.agents[i]
	a.role = r
	switch r {
	case drifting:
		a.slide = slides[i%len(slides)]
	case renewed, replaced, withdrawn:
		a.older = card{id: cardID(f.salt, 2*i+1), issued: f.cfg.Start.Add(-olderAge)}
		if r == renewed {
			a.older.expires = f.cfg.Start.Add(-f.expiryAge())
		}
	case novice:
		a.card.issued = f.cfg.Start.Add(-f.noviceAge())
	}
}

// agentID returns ids of two usual forms: a DID and a plain name.
func agentID(t *archetype, i int) string {
	if i%5 == 4 {
		return fmt.Sprintf("%s-agent-%03d", t.Name, i)
	}
	return fmt.Sprintf("did:web:fleet.example:%s:%03d", t.Name, i)
}

func cardID(salt uint64, n int) string {
	return fmt.Sprintf("ac-%016x", mix(salt^0xca4d+uint64(n)))
}
