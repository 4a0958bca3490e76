package auth

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/message"
)

// Scope is one kind of act that a token allows.
type Scope string

// The scopes.
const (
	TracesWrite   Scope = "traces:write"
	CardsWrite    Scope = "cards:write" // register and revoke
	CardsRead     Scope = "cards:read"  // each and all; the current one of an agent is public
	SessionsWrite Scope = "sessions:write"
	Handshake     Scope = "handshake"
	MessagesWrite Scope = "messages:write"     // have messages to agents signed
	MicroWrite    Scope = "micro:write"        // have AIVS-Micro proofs signed; anyone may verify them
	LettersWrite  Scope = "dead-letters:write" // mark dead letters as handled
	Runtime       Scope = "runtime"            // what agents' runtimes ask: verify messages, decide tool calls, sign tool results
)

var scopes = []Scope{TracesWrite, CardsWrite, CardsRead, SessionsWrite, Handshake, MessagesWrite, MicroWrite, LettersWrite, Runtime}

// Entry is one line of the token file, a JSON object.
type Entry struct {
	Name   string   `json:"name"`   // for logs and messages; the sender of messages that it signs
	SHA256 string   `json:"sha256"` // of the token's bytes, 64 hexadecimal digits
	Agents []string `json:"agents"` // ids, "prefix*", or "*"
	Scopes []Scope  `json:"scopes"`

	// Source is who holds the token: a person, an agent, or a schedule (system).
	// Scope messages:write needs it.
	Source message.Source `json:"source"`

	hash [sha256.Size]byte
}

// Hash returns what stands in the file for a token.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// readFile reads a token file that only its owner may read. Empty lines and
// lines that begin with # are skipped.
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
	if err := private(path, info); err != nil {
		return nil, err
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

func private(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("token file %s: not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("token file %s: mode %#o lets others at it: chmod 600 %s", path, mode, path)
	}
	return nil
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
		return fmt.Errorf("%s: agents is empty; \"*\" stands for all", e.Name)
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
	return e.validateSource()
}

// validateSource holds apart who speaks to an agent and who listens on its behalf:
// a runtime that could sign would make its model's words a person's.
func (e *Entry) validateSource() error {
	signs := slices.Contains(e.Scopes, MessagesWrite)
	switch {
	case signs && e.Source == "":
		return fmt.Errorf("%s: scope %s needs a source: human, agent or system", e.Name, MessagesWrite)
	case e.Source != "" && !e.Source.Valid():
		return fmt.Errorf("%s: source %q is none of human, agent, system", e.Name, e.Source)
	case signs && slices.Contains(e.Scopes, Runtime):
		return fmt.Errorf("%s: scopes %s and %s on one token would let a runtime sign what it is told: use two entries", e.Name, MessagesWrite, Runtime)
	}
	return nil
}

// unique refuses two entries of one name, or one token with two grants.
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

// covers tells whether a pattern of Entry.Agents covers an agent.
func covers(pattern, agent string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(agent, prefix)
	}
	return pattern == agent
}
