package auth

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/message"
)

// Scope is a kind of request that a token permits.
type Scope string

// The scopes.
const (
	TracesWrite   Scope = "traces:write"
	CardsWrite    Scope = "cards:write" // register and revoke
	CardsRead     Scope = "cards:read"  // all cards; the current card of an agent is public
	SessionsWrite Scope = "sessions:write"
	Handshake     Scope = "handshake"
	MessagesWrite Scope = "messages:write"     // sign messages to agents
	MicroWrite    Scope = "micro:write"        // sign AIVS-Micro proofs; anyone may verify them
	LettersWrite  Scope = "dead-letters:write" // mark dead letters as handled
	Runtime       Scope = "runtime"            // what runtimes need: verify messages, decide calls, sign results
)

var scopes = []Scope{TracesWrite, CardsWrite, CardsRead, SessionsWrite, Handshake, MessagesWrite, MicroWrite, LettersWrite, Runtime}

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
		entry, err := parseEntry(line)
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

func parseEntry(line []byte) (Entry, error) {
	var entry Entry
	if err := json.Unmarshal(line, &entry, json.RejectUnknownMembers(true)); err != nil {
		return Entry{}, fmt.Errorf("want {name, sha256, agents, scopes, source}: %w", err)
	}
	return entry, entry.validate()
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
