// Package auth decides which token may act for which agent.
//
// It owns the token file. Each line is a named entry with the SHA-256 of a token, the agents that
// the token covers, its scopes, and, if it may sign messages, the kind of source that its holder
// is. The package does not know HTTP. The caller reads the bearer token from the request, and
// maps ErrUnknownToken to 401 and ErrScope to 403.
//
// Invariants: the file contains no tokens, only hashes, and is refused if other users may read
// it; all entries are compared in constant time; a change of the file takes effect without a
// restart; a broken change leaves the last good entries in force and is reported; no error
// contains a token or a hash.
package auth

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

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

var scopes = []Scope{TracesWrite, TracesRead, BundlesRead, CardsWrite, CardsRead, SessionsWrite, Handshake, MessagesWrite, MicroWrite, LettersWrite, Runtime}

// Entry is one line of the token file, a JSON object.
type Entry struct {
	Name   string   `json:"name"`   // for logs and messages; the sender of messages that it signs
	SHA256 string   `json:"sha256"` // of the token's bytes, 64 hexadecimal digits
	Agents []string `json:"agents"` // ids, "prefix*", or "*"
	Scopes []Scope  `json:"scopes"`

	// Source is the kind of the token's holder: a person, an agent, or a schedule (system). Scope
	// messages:write requires it.
	Source message.Source `json:"source"`

	hash [sha256.Size]byte
}

// Hash returns the value for a token in the file.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// readFile reads a token file that only its owner may read. It skips empty lines and lines that
// begin with #.
func readFile(path string) ([]Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("token file %s: not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("token file %s: mode %#o lets other users read or change it: chmod 600 %s", path, mode, path)
	}
	var entries []Entry
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		var entry Entry
		err := json.Unmarshal(line, &entry, json.RejectUnknownMembers(true))
		if err != nil {
			err = fmt.Errorf("want {name, sha256, agents, scopes, source}: %w", err)
		} else {
			err = entry.validate()
		}
		if err != nil {
			return nil, fmt.Errorf("token file %s:%d: %w", path, number, err)
		}
		entries = append(entries, entry)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("token file %s: %w", path, err)
	}
	return entries, unique(path, entries)
}

func (e *Entry) validate() error {
	n, err := hex.Decode(e.hash[:], []byte(e.SHA256))
	switch {
	case e.Name == "":
		return errors.New("name is empty")
	case len(e.SHA256) != hex.EncodedLen(sha256.Size) || err != nil || n != sha256.Size:
		return fmt.Errorf("%s: sha256 is not 64 hexadecimal digits", e.Name)
	case len(e.Agents) == 0:
		return fmt.Errorf("%s: agents is empty; \"*\" means all agents", e.Name)
	case slices.Contains(e.Agents, ""):
		return fmt.Errorf("%s: an agent is empty", e.Name)
	case len(e.Scopes) == 0:
		return fmt.Errorf("%s: scopes is empty", e.Name)
	}
	for _, scope := range e.Scopes {
		if !slices.Contains(scopes, scope) {
			return fmt.Errorf("%s: unknown scope %q, want one of %v", e.Name, scope, scopes)
		}
	}
	// Senders to an agent are separate from the agent's own runtime. A runtime that could sign
	// would turn its model's words into a person's.
	signs := slices.Contains(e.Scopes, MessagesWrite)
	switch {
	case signs && e.Source == "":
		return fmt.Errorf("%s: scope %s needs a source: human, agent or system", e.Name, MessagesWrite)
	case e.Source != "" && !e.Source.Valid():
		return fmt.Errorf("%s: source is %q: want human, agent or system", e.Name, e.Source)
	case signs && slices.Contains(e.Scopes, Runtime):
		return fmt.Errorf("%s: scopes %s and %s on one token would let a runtime sign messages that its model wrote: use two entries", e.Name, MessagesWrite, Runtime)
	}
	return nil
}

// unique refuses two entries with one name, and two entries with one token.
func unique(path string, entries []Entry) error {
	names, hashes := map[string]bool{}, map[[sha256.Size]byte]string{}
	for _, e := range entries {
		if names[e.Name] {
			return fmt.Errorf("token file %s: two entries are named %s", path, e.Name)
		}
		if other, twice := hashes[e.hash]; twice {
			return fmt.Errorf("token file %s: %s and %s have the same token", path, other, e.Name)
		}
		names[e.Name], hashes[e.hash] = true, e.Name
	}
	return nil
}
