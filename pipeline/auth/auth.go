package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Errors of Authorize.
var (
	ErrUnknownToken = errors.New("no such token")
	ErrScope        = errors.New("the token does not have this scope")
)

// Grant is what a token allows. The zero value allows nothing.
type Grant struct {
	Name   string // of the entry; "open" without a token file
	agents []string
}

// SpeaksFor tells whether the grant speaks for an agent.
func (g Grant) SpeaksFor(agent string) bool {
	return slices.ContainsFunc(g.agents, func(pattern string) bool { return covers(pattern, agent) })
}

// Agent returns the one agent that the grant speaks for, "" when it may be one
// of several.
func (g Grant) Agent() string {
	if len(g.agents) != 1 || strings.HasSuffix(g.agents[0], "*") {
		return ""
	}
	return g.agents[0]
}

// Keeper authorises by a token file, or lets everyone in where Open allowed it.
// It may be used by any goroutine.
type Keeper struct {
	path string // "" in open mode
	log  *slog.Logger

	mu      sync.Mutex
	entries []Entry
	read    stamp // of the file when it was last read, well or badly
	checked time.Time
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

// recheck is how old the knowledge of the file may become.
const recheck = time.Second

// Open returns the keeper for a service that listens on address. Without a token
// file (tokens == "") everyone may do everything, and that is allowed only where
// the listener is loopback.
func Open(tokens, address string, log *slog.Logger) (*Keeper, error) {
	if tokens == "" {
		if !loopback(address) {
			return nil, fmt.Errorf("listening on %s without a token file would let anyone publish: "+
				"give a token file, or listen on 127.0.0.1", address)
		}
		return &Keeper{log: log}, nil
	}
	read := stampOf(tokens) // before reading: a change in between is then seen
	entries, err := readFile(tokens)
	if err != nil {
		return nil, err
	}
	return &Keeper{path: tokens, log: log, entries: entries, read: read, checked: time.Now()}, nil
}

// loopback tells whether only this machine reaches an address. A host name
// other than localhost is not taken to be loopback: it could be re-pointed.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Authorize returns what the bearer token allows within scope. The error is
// ErrUnknownToken or ErrScope.
func (k *Keeper) Authorize(bearer string, scope Scope) (Grant, error) {
	if k.path == "" {
		return Grant{Name: "open", agents: []string{"*"}}, nil
	}
	entry, known := find(k.current(time.Now()), sha256.Sum256([]byte(bearer)))
	switch {
	case !known:
		return Grant{}, ErrUnknownToken
	case !slices.Contains(entry.Scopes, scope):
		return Grant{}, fmt.Errorf("%w: %s", ErrScope, scope)
	}
	return Grant{Name: entry.Name, agents: entry.Agents}, nil
}

// find compares with every entry, whichever matches, in constant time.
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

// current returns the entries in force, after a look at the file if the last one
// is older than recheck.
func (k *Keeper) current(now time.Time) []Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.checked) < recheck {
		return k.entries
	}
	k.checked = now
	if state := stampOf(k.path); state != k.read {
		k.read = state
		k.reload()
	}
	return k.entries
}

func (k *Keeper) reload() {
	entries, err := readFile(k.path)
	if err != nil {
		k.log.Error("token file is not usable, the last good one stays in force", "error", err)
		return
	}
	k.entries = entries
	k.log.Info("token file reloaded", "tokens", len(entries))
}

// stampOf returns the zero stamp for a file that cannot be looked at; reading it
// will say why.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{modified: info.ModTime(), size: info.Size(), mode: info.Mode()}
}
