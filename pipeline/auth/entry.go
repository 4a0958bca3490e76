package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/message"
)

// Entry is one line of the token file, a JSON object.
type Entry struct {
	Name   string   `json:"name"`   // for logs and messages; the sender of messages that it signs
	SHA256 string   `json:"sha256"` // of the token's bytes, 64 hexadecimal digits
	Agents []string `json:"agents"` // ids, "prefix*", or "*"
	Scopes []Scope  `json:"scopes"`

	// Source is the kind of the token's holder: a person, an agent, or a schedule (system). Scope
	// messages:write requires it.
	Source message.Source `json:"source,omitempty"`

	Created time.Time `json:"created,omitzero"` // when plumbline token new or rotate made the token
	Expires time.Time `json:"expires,omitzero"` // the token is not valid from then on; without it, until it is revoked
	// Previous are the tokens that rotation replaced and that are valid for some more time.
	Previous []Previous `json:"previous,omitempty"`

	hash [sha256.Size]byte
}

// Previous is a token that rotation replaced.
type Previous struct {
	SHA256  string    `json:"sha256"`
	Expires time.Time `json:"expires"`

	hash [sha256.Size]byte
}

// Hash returns the value for a token in the file.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// fileLine is one line of a token file.
type fileLine struct {
	text  string // as it stands in the file
	entry *Entry // nil: a comment or an empty line
}

// readFile returns the entries of a token file.
func readFile(path string) (entries []Entry, err error) {
	lines, err := readLines(path)
	for _, l := range lines {
		if l.entry != nil {
			entries = append(entries, *l.entry)
		}
	}
	return entries, err
}

// readLines reads a token file that only its owner may read, or that is a mounted secret (see protected). Lines that
// begin with # are comments.
func readLines(path string) ([]fileLine, error) {
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
	if !protected(info.Mode().Perm(), ownerOf(info), os.Geteuid()) {
		return nil, fmt.Errorf("token file %s: mode %#o lets other users read or change it: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	whole, err := io.ReadAll(file) // a line has no limit: an entry may have thousands of agents
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	var lines []fileLine
	for line := range strings.Lines(string(whole)) {
		l := fileLine{text: strings.TrimRight(line, "\r\n")}
		text := strings.TrimSpace(l.text)
		if text != "" && text[0] != '#' {
			if l.entry, err = parse(text); err != nil {
				return nil, fmt.Errorf("token file %s:%d: %w", path, len(lines)+1, err)
			}
		}
		lines = append(lines, l)
	}
	return lines, unique(path, lines)
}

// protected reports whether no other user may read a token file. Where the service is not root, a file of root may be
// readable by a group: the files of a Secret that Kubernetes mounts belong to root and to the group of the pod, which is
// how the service reads them.
func protected(mode os.FileMode, owner, service int) bool {
	return mode&0o077 == 0 || owner == 0 && service != 0 && mode&0o037 == 0
}

// ownerOf returns the user to whom a file belongs; -1 if the system does not say.
func ownerOf(info os.FileInfo) int {
	if about, known := info.Sys().(*syscall.Stat_t); known {
		return int(about.Uid)
	}
	return -1
}

func parse(text string) (*Entry, error) {
	entry := new(Entry)
	if err := json.Unmarshal([]byte(text), entry, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("want {name, sha256, agents, scopes, source, created, expires, previous}: %w", err)
	}
	return entry, entry.validate()
}

func (e *Entry) validate() error {
	switch {
	case e.Name == Anyone:
		return fmt.Errorf("token %q: this name is that of requests without a token: choose another one", e.Name)
	case e.Name == "":
		return errors.New("the entry has no name: add \"name\", which no other entry has")
	case !readHash(&e.hash, e.SHA256):
		return fmt.Errorf("token %q: sha256 is not 64 hexadecimal digits: write the SHA-256 of the token, or let plumbline token new make both", e.Name)
	case len(e.Agents) == 0:
		return fmt.Errorf("token %q: agents is empty: list the agents that it may speak for; \"*\" is all agents", e.Name)
	case slices.Contains(e.Agents, ""):
		return fmt.Errorf("token %q: agents contains an empty id: remove it", e.Name)
	case len(e.Scopes) == 0:
		return fmt.Errorf("token %q: scopes is empty: list what it permits, some of %v", e.Name, scopes)
	}
	for i := range e.Previous {
		p := &e.Previous[i]
		if !readHash(&p.hash, p.SHA256) || p.Expires.IsZero() {
			return fmt.Errorf("token %q: previous[%d] needs a sha256 of 64 hexadecimal digits and a time in expires", e.Name, i)
		}
	}
	for _, scope := range e.Scopes {
		if !slices.Contains(scopes, scope) {
			return fmt.Errorf("token %q: unknown scope %q: want one of %v", e.Name, scope, scopes)
		}
	}
	// Senders to an agent are separate from the agent's own runtime. A runtime that could sign
	// would turn its model's words into a person's.
	signs := slices.Contains(e.Scopes, MessagesWrite)
	switch {
	case signs && e.Source == "":
		return fmt.Errorf("token %q: scope %s needs a source: human, agent or system", e.Name, MessagesWrite)
	case e.Source != "" && !e.Source.Valid():
		return fmt.Errorf("token %q: source is %q: want human, agent or system", e.Name, e.Source)
	case signs && slices.Contains(e.Scopes, Runtime):
		return fmt.Errorf("token %q: scopes %s and %s on one token would let a runtime sign messages that its model wrote: use two entries", e.Name, MessagesWrite, Runtime)
	}
	return nil
}

func readHash(to *[sha256.Size]byte, text string) bool {
	_, err := hex.Decode(to[:], []byte(text[:min(len(text), hex.EncodedLen(sha256.Size))]))
	return err == nil && len(text) == hex.EncodedLen(sha256.Size)
}

// unique refuses two entries with one name, and two entries with one token.
func unique(path string, lines []fileLine) error {
	names, holders := map[string]bool{}, map[[sha256.Size]byte]string{}
	for _, l := range lines {
		e := l.entry
		if e == nil {
			continue
		}
		if names[e.Name] {
			return fmt.Errorf("token file %s: two entries are named %q: rename or remove one of them", path, e.Name)
		}
		names[e.Name] = true
		hashes := [][sha256.Size]byte{e.hash}
		for _, p := range e.Previous {
			hashes = append(hashes, p.hash)
		}
		for _, hash := range hashes {
			if other, twice := holders[hash]; twice {
				return fmt.Errorf("token file %s: %q and %q have the same token: remove one of them", path, other, e.Name)
			}
			holders[hash] = e.Name
		}
	}
	return nil
}
