package auth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/reload"
)

// reloaded returns the error of a request to a service that reads the file as it is now.
func reloaded(t *testing.T, path, token string, scope Scope) error {
	t.Helper()
	keeper, _ := open(t, path)
	_, err := keeper.Authorize(token, scope)
	return err
}

// A token is made, used, rotated and revoked; the lines of others and comments stay as they are.
func TestTokenFile(t *testing.T) {
	hand := `{ "name":"hand", "sha256":"` + Hash("by hand") + `", "agents":["a"], "scopes":["traces:write"]}`
	path := writeTokens(t, 0o600, "# publishers", "", hand)
	file := TokenFile{path}
	now := time.Now()
	first, err := file.New(t.Context(), Entry{Name: "shop", Agents: []string{"fleet-*"}, Scopes: PublisherScopes()}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range PublisherScopes() {
		if err := reloaded(t, path, first, scope); err != nil {
			t.Errorf("new token: %v", err)
		}
	}
	second, _, err := file.Rotate(t.Context(), "shop", time.Hour, 0, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{first, second, "by hand"} {
		if err := reloaded(t, path, token, TracesWrite); err != nil {
			t.Errorf("within the overlap: %v", err)
		}
	}
	third, entry, err := file.Rotate(t.Context(), "shop", 0, 0, now)
	if err != nil || len(entry.Previous) != 0 {
		t.Fatalf("%v, previous %v; want none", err, entry)
	}
	for _, token := range []string{first, second} { // whoever has one of them is out
		if err := reloaded(t, path, token, TracesWrite); !errors.Is(err, ErrUnknownToken) {
			t.Errorf("rotated without overlap: %v, want ErrUnknownToken", err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "# publishers\n\n"+hand+"\n") || strings.Contains(string(text), third) {
		t.Errorf("the file is\n%s\nwant the first lines unchanged and no token; %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 600", info.Mode(), err)
	}
	if err := file.Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{first, third} {
		if err := reloaded(t, path, token, TracesWrite); !errors.Is(err, ErrUnknownToken) {
			t.Errorf("revoked: %v, want ErrUnknownToken", err)
		}
	}
}

// The time of a token's end is kept, for each token of an entry.
func TestTokensExpire(t *testing.T) {
	file := TokenFile{filepath.Join(t.TempDir(), "new", "directory", FileName)}
	past := time.Now().Add(-2 * time.Hour)
	old, err := file.New(t.Context(), Entry{Name: "shop", Agents: []string{"a"}, Scopes: PublisherScopes(), Expires: past.Add(time.Hour)}, past)
	if err != nil {
		t.Fatal(err)
	}
	if err := reloaded(t, file.Path, old, TracesWrite); !errors.Is(err, ErrExpired) {
		t.Errorf("%v, want ErrExpired", err)
	}
	replaced, _, err := file.Rotate(t.Context(), "shop", 0, time.Minute+2*time.Hour, past)
	if err != nil {
		t.Fatal(err)
	}
	if err := reloaded(t, file.Path, replaced, TracesWrite); err != nil {
		t.Error(err)
	}
	if _, _, err := file.Rotate(t.Context(), "shop", 30*time.Minute, 0, past); err != nil {
		t.Fatal(err)
	}
	if err := reloaded(t, file.Path, replaced, TracesWrite); !errors.Is(err, ErrExpired) {
		t.Errorf("after the overlap: %v, want ErrExpired", err)
	}
}

// An earlier rotation's overlap is not lengthened by a later one, and is shortened by a shorter one.
func TestOverlapIsTheShortest(t *testing.T) {
	file := TokenFile{filepath.Join(t.TempDir(), FileName)}
	now := time.Now().UTC().Truncate(time.Second)
	if _, err := file.New(t.Context(), Entry{Name: "shop", Agents: []string{"a"}, Scopes: PublisherScopes()}, now); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		overlap time.Duration
		want    []time.Duration // until the previous tokens expire, the oldest first
	}{
		{2 * time.Hour, []time.Duration{2 * time.Hour}},
		{5 * time.Hour, []time.Duration{2 * time.Hour, 5 * time.Hour}},
		{3 * time.Hour, []time.Duration{2 * time.Hour, 3 * time.Hour, 3 * time.Hour}},
	} {
		_, entry, err := file.Rotate(t.Context(), "shop", c.overlap, 0, now)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for _, p := range entry.Previous {
			got = append(got, p.Expires.Sub(now))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after an overlap of %s the previous tokens are valid for %s, want %s", c.overlap, got, c.want)
		}
	}
}

// An entry with very many agents is read back.
func TestLongEntry(t *testing.T) {
	file := TokenFile{filepath.Join(t.TempDir(), FileName)}
	agents := make([]string, 3000)
	for i := range agents {
		agents[i] = fmt.Sprintf("did:web:agent-%d.fleet.example", i)
	}
	made, err := file.New(t.Context(), Entry{Name: "fleet", Agents: agents, Scopes: PublisherScopes()}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := reloaded(t, file.Path, made, TracesWrite); err != nil {
		t.Error(err)
	}
}

// What cannot be done is refused, and changes nothing.
func TestTokenFileRefuses(t *testing.T) {
	path := writeTokens(t, 0o600, line("shop", token))
	file := TokenFile{path}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for want, entry := range map[string]Entry{
		ErrTaken.Error(): {Name: "shop", Agents: []string{"a"}, Scopes: PublisherScopes()},
		"unknown scope":  {Name: "b", Agents: []string{"a"}, Scopes: []Scope{"traces:writ"}},
		"needs a source": {Name: "c", Agents: []string{"a"}, Scopes: []Scope{MessagesWrite}},
	} {
		if _, err := file.New(t.Context(), entry, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := file.Revoke(t.Context(), "nobody"); !errors.Is(err, ErrNoEntry) {
		t.Errorf("revoke: %v, want ErrNoEntry", err)
	}
	if _, _, err := file.Rotate(t.Context(), "nobody", 0, 0, time.Now()); !errors.Is(err, ErrNoEntry) {
		t.Errorf("rotate: %v, want ErrNoEntry", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %s, %v", after, err)
	}
}

// Of several writers none loses another's entry, and no lock is left.
func TestTokenFileHasOneWriterAtATime(t *testing.T) {
	file := TokenFile{filepath.Join(t.TempDir(), FileName)}
	const writers = 16
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range writers {
		group.Go(func() {
			<-start
			if _, err := file.New(t.Context(), Entry{Name: fmt.Sprint(i), Agents: []string{"a"}, Scopes: PublisherScopes()}, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	group.Wait()
	if entries, err := file.List(); err != nil || len(entries) != writers {
		t.Errorf("%d entries, %v; want %d", len(entries), err, writers)
	}
	lock, err := durable.Acquire(file.Path+".lock", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

// A running keeper takes over what the commands change.
func TestKeeperFollowsTheTokenFile(t *testing.T) {
	path := writeTokens(t, 0o600, line("shop", token))
	keeper, _ := open(t, path)
	if err := (TokenFile{path}).Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if entries := keeper.entries.Current(time.Now().Add(reload.Recheck)); len(entries) != 0 {
		t.Errorf("%d entries, want none", len(entries))
	}
	if _, err := keeper.Authorize(token, TracesWrite); !errors.Is(err, ErrUnknownToken) || keeper.LetsAnyoneIn() {
		t.Errorf("%v, want ErrUnknownToken: a file without entries lets nobody in", err)
	}
}

// Root makes no token file that the service, as another user, could not read.
func TestTokenFileOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, err := TokenFile{filepath.Join(dir, FileName)}.New(t.Context(), Entry{Name: "shop", Agents: []string{"a"}, Scopes: PublisherScopes()}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("%v, want a refusal", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v; want nothing, not even a lock", left, err)
	}
}
