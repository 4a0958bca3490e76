// Package auth decides which token may act for which agent.
//
// It owns the token file. Each line is a named entry with the SHA-256 of a token, the agents that
// the token covers, its scopes, and, if it may sign messages, the kind of source that its holder
// is. A TokenFile makes, rotates and revokes them. The package does not know HTTP. The caller reads
// the bearer token from the request, and maps ErrUnknownToken to 401 and ErrScope to 403.
//
// Invariants: the file contains no tokens, only hashes, and is refused if other users may read
// it; all hashes are compared in constant time; a change of the file takes effect without a
// restart; a broken change keeps the last valid entries and is reported; no error
// contains a token or a hash.
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
	ErrExpired      = fmt.Errorf("%w any more: it has expired", ErrUnknownToken)
	ErrScope        = errors.New("the token does not have this scope")
)

// Anyone is the name of the grant where no token is needed. No token has it.
const Anyone = "open"

// Grant is what a token permits. The zero value permits nothing.
type Grant struct {
	Name   string         // of the entry; Anyone without a token file
	Source message.Source // source of the messages that it signs, with scope messages:write
	agents []string
}

// openGrant is that of everyone where no token is needed.
var openGrant = Grant{Name: Anyone, Source: message.Anonymous, agents: []string{"*"}}

// SpeaksFor reports whether the grant covers an agent.
func (g Grant) SpeaksFor(agent string) bool {
	return slices.ContainsFunc(g.agents, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return pattern == agent || open && strings.HasPrefix(agent, prefix)
	})
}

// Covers returns the agents of the grant for a query: ids, and prefixes of ids. The empty prefix
// covers every agent.
func (g Grant) Covers() (ids, prefixes []string) {
	for _, pattern := range g.agents {
		if prefix, open := strings.CutSuffix(pattern, "*"); open {
			prefixes = append(prefixes, prefix)
		} else {
			ids = append(ids, pattern)
		}
	}
	return ids, prefixes
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
			return nil, fmt.Errorf("listening on %s without a token file would let anyone publish and read: "+
				"make a token with plumbline token new and name its file with token_file, or listen on 127.0.0.1", address)
		}
		return new(Keeper), nil
	}
	entries, err := reload.Open(tokens, readFile, func(entries []Entry, err error) {
		if err != nil {
			log.Error("token file is invalid; the previous tokens stay valid", "error", err)
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

// Authorize returns what the bearer token permits within scope. The error is ErrUnknownToken,
// ErrExpired, which wraps it, or ErrScope; with the last one the grant has the entry's name and
// permits nothing.
func (k *Keeper) Authorize(bearer string, scope Scope) (Grant, error) {
	return k.AuthorizeHash(sha256.Sum256([]byte(bearer)), scope)
}

// AuthorizeHash does the same for the SHA-256 of a token. A login remembers only that.
func (k *Keeper) AuthorizeHash(bearer [sha256.Size]byte, scope Scope) (Grant, error) {
	if k.LetsAnyoneIn() {
		return openGrant, nil
	}
	now := time.Now()
	entry, expires := find(k.entries.Current(now), bearer)
	switch {
	case entry == nil:
		return Grant{}, ErrUnknownToken
	case expired(expires, now):
		return Grant{}, ErrExpired
	case !slices.Contains(entry.Scopes, scope):
		return Grant{Name: entry.Name}, fmt.Errorf("%w: %s", ErrScope, scope)
	}
	return Grant{Name: entry.Name, Source: entry.Source, agents: entry.Agents}, nil
}

// Grants returns what each token permits within scope, in the order of the file, without those that have expired.
func (k *Keeper) Grants(scope Scope) (grants []Grant) {
	if k.LetsAnyoneIn() {
		return []Grant{openGrant}
	}
	now := time.Now()
	for _, e := range k.entries.Current(now) {
		if slices.Contains(e.Scopes, scope) && !expired(e.Expires, now) {
			grants = append(grants, Grant{Name: e.Name, Source: e.Source, agents: e.Agents})
		}
	}
	return grants
}

// find compares the hash with every hash in constant time, even after a match. It returns the entry
// of the token, and when the token expires.
func find(entries []Entry, hash [sha256.Size]byte) (found *Entry, expires time.Time) {
	for i := range entries {
		e := &entries[i]
		if subtle.ConstantTimeCompare(e.hash[:], hash[:]) == 1 {
			found, expires = e, e.Expires
		}
		for _, p := range e.Previous {
			if subtle.ConstantTimeCompare(p.hash[:], hash[:]) == 1 {
				found, expires = e, p.Expires
			}
		}
	}
	return found, expires
}

// expired reports whether a time has come. The zero time never does.
func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// Scope is a kind of request that a token permits.
type Scope string

// The scopes.
const (
	TracesWrite   Scope = "traces:write"
	TracesRead    Scope = "traces:read"  // stored traces with their verdicts
	BundlesRead   Scope = "bundles:read" // sealed bundles
	CardsWrite    Scope = "cards:write"  // register and revoke
	CardsRead     Scope = "cards:read"   // all cards; the current card of an agent is public
	SessionsWrite Scope = "sessions:write"
	Handshake     Scope = "handshake"
	MessagesWrite Scope = "messages:write"     // sign messages to agents
	MicroWrite    Scope = "micro:write"        // sign AIVS-Micro proofs; anyone may verify them
	LettersWrite  Scope = "dead-letters:write" // mark dead letters as handled
	Runtime       Scope = "runtime"            // what runtimes need: verify messages, decide calls, sign results
)

// PublisherScopes returns the scopes that an agent or its runtime needs to publish: traces, its cards,
// and the ends of its sessions.
func PublisherScopes() []Scope { return []Scope{TracesWrite, CardsWrite, CardsRead, SessionsWrite} }

var scopes = []Scope{TracesWrite, TracesRead, BundlesRead, CardsWrite, CardsRead, SessionsWrite, Handshake, MessagesWrite, MicroWrite, LettersWrite, Runtime}
