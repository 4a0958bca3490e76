package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/reload"
	"github.com/plumbline/plumbline/pipeline/transport"
)

// The errors of Authorize.
var (
	ErrUnknownToken = errors.New("no such token")
	ErrScope        = errors.New("the token does not have this scope")
)

// Grant is what a token permits. The zero value permits nothing.
type Grant struct {
	Name   string         // of the entry; "open" without a token file
	Source message.Source // source of the messages that it signs, with scope messages:write
	agents []string
}

// SpeaksFor reports whether the grant covers an agent.
func (g Grant) SpeaksFor(agent string) bool {
	return slices.ContainsFunc(g.agents, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return pattern == agent || open && strings.HasPrefix(agent, prefix)
	})
}

// Agent returns the agent of the grant, or "" if the grant covers more than one.
func (g Grant) Agent() string {
	if len(g.agents) != 1 || strings.HasSuffix(g.agents[0], "*") {
		return ""
	}
	return g.agents[0]
}

// Keeper authorises requests by a token file, or permits everything if Open allowed that. Any
// goroutine may use it.
type Keeper struct {
	entries *reload.File[[]Entry] // nil in open mode
}

// Open returns the keeper for a service that listens on address. Without a token file (tokens ==
// "") everyone may do everything. That is allowed only on a loopback listener, and a message that
// is signed there has an anonymous source.
func Open(tokens, address string, log *slog.Logger) (*Keeper, error) {
	if tokens == "" {
		if _, _, err := net.SplitHostPort(address); err != nil || !transport.Loopback(address) {
			return nil, fmt.Errorf("listening on %s without a token file would let anyone publish: "+
				"give a token file, or listen on 127.0.0.1", address)
		}
		return new(Keeper), nil
	}
	entries, err := reload.Open(tokens, readFile, func(entries []Entry, err error) {
		if err != nil {
			log.Error("token file is invalid; the previous tokens stay in force", "error", err)
			return
		}
		log.Info("token file reloaded", "tokens", len(entries))
	})
	if err != nil {
		return nil, err
	}
	return &Keeper{entries: entries}, nil
}

// LetsAnyoneIn reports whether no token is needed.
func (k *Keeper) LetsAnyoneIn() bool { return k.entries == nil }

// Authorize returns what the bearer token permits within scope. The error is ErrUnknownToken or
// ErrScope.
func (k *Keeper) Authorize(bearer string, scope Scope) (Grant, error) {
	if k.LetsAnyoneIn() {
		return Grant{Name: "open", Source: message.Anonymous, agents: []string{"*"}}, nil
	}
	entry, known := find(k.entries.Current(time.Now()), sha256.Sum256([]byte(bearer)))
	switch {
	case !known:
		return Grant{}, ErrUnknownToken
	case !slices.Contains(entry.Scopes, scope):
		return Grant{}, fmt.Errorf("%w: %s", ErrScope, scope)
	}
	return Grant{Name: entry.Name, Source: entry.Source, agents: entry.Agents}, nil
}

// find compares the hash with every entry in constant time, even after a match.
func find(entries []Entry, hash [sha256.Size]byte) (*Entry, bool) {
	found := -1
	for i := range entries {
		equal := subtle.ConstantTimeCompare(entries[i].hash[:], hash[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	if found < 0 {
		return nil, false
	}
	return &entries[found], true
}
