package auth

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/reload"
)

const token = "shopping-secret"

// line returns a valid entry for token.
func line(name, token string) string {
	return `{"name":"` + name + `","sha256":"` + Hash(token) + `","agents":["did:web:shop.example","fleet-*"],"scopes":["traces:write"]}`
}

func writeTokens(t *testing.T, mode os.FileMode, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	rewrite(t, path, mode, lines...)
	return path
}

func rewrite(t *testing.T, path string, mode os.FileMode, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), mode); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) (*Keeper, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	keeper, err := Open(path, "0.0.0.0:8080", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return keeper, &log
}

func TestAuthorize(t *testing.T) {
	keeper, _ := open(t, writeTokens(t, 0o600, "# publishers", "", line("shop", token), line("other", "x")))
	grant, err := keeper.Authorize(token, TracesWrite)
	if err != nil {
		t.Fatal(err)
	}
	if grant.Name != "shop" {
		t.Errorf("grant of %q, want shop", grant.Name)
	}
	for agent, want := range map[string]bool{
		"did:web:shop.example":   true,
		"did:web:shop.example.x": false,
		"fleet-7":                true,
		"fleet":                  false,
		"":                       false,
	} {
		if got := grant.SpeaksFor(agent); got != want {
			t.Errorf("SpeaksFor(%q) = %v, want %v", agent, got, want)
		}
	}
	if _, err := keeper.Authorize(token, CardsWrite); !errors.Is(err, ErrScope) {
		t.Errorf("another scope: %v, want ErrScope", err)
	}
	for _, wrong := range []string{"", token + " ", Hash(token)} {
		grant, err := keeper.Authorize(wrong, TracesWrite)
		if !errors.Is(err, ErrUnknownToken) || grant.SpeaksFor("fleet-7") {
			t.Errorf("token %q: %v, want ErrUnknownToken and no grant", wrong, err)
		}
	}
}

// The grants of a scope are those of the tokens that have it and are valid.
func TestGrants(t *testing.T) {
	expired := strings.Replace(line("past", "x"), `"scopes"`, `"expires":"2020-01-01T00:00:00Z","scopes"`, 1)
	reader := strings.Replace(line("reader", "y"), "traces:write", "traces:read", 1)
	keeper, _ := open(t, writeTokens(t, 0o600, line("shop", token), expired, reader))
	grants := keeper.Grants(TracesWrite)
	if len(grants) != 1 || grants[0].Name != "shop" || !grants[0].SpeaksFor("fleet-7") || grants[0].SpeaksFor("other") {
		t.Errorf("grants of traces:write: %+v", grants)
	}
	if grants := new(Keeper).Grants(TracesWrite); len(grants) != 1 || !grants[0].SpeaksFor("other") {
		t.Errorf("grants where no token is needed: %+v", grants)
	}
}

func TestOpenModeIsForLoopbackOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "[::1]:8080": true, "localhost:8080": true, "127.9.9.9:0": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "192.168.1.2:8080": false, "shop.example:8080": false, "127.0.0.1": false,
	} {
		keeper, err := Open("", address, slog.New(slog.DiscardHandler))
		if (err == nil) != want {
			t.Errorf("%s: %v, want open %v", address, err, want)
			continue
		}
		if !want {
			continue
		}
		if grant, err := keeper.Authorize("", CardsWrite); err != nil || !grant.SpeaksFor("anyone") {
			t.Errorf("%s: open mode refused: %v", address, err)
		}
	}
}

func TestRefusedFiles(t *testing.T) {
	good := line("shop", token)
	cases := map[string]struct {
		mode  os.FileMode
		lines []string
		want  string
	}{
		"readable by the group":  {0o640, []string{good}, "chmod 600"},
		"unknown member":         {0o600, []string{good, `{"nme":"x"}`}, ":2:"},
		"duplicate member":       {0o600, []string{`{"name":"a",` + good[1:]}, "duplicate"},
		"other case":             {0o600, []string{strings.Replace(good, "agents", "Agents", 1)}, "Agents"},
		"a token, not its hash":  {0o600, []string{strings.Replace(good, Hash(token), token, 1)}, "64 hexadecimal digits"},
		"no agents":              {0o600, []string{`{"name":"a","sha256":"` + Hash("x") + `","scopes":["traces:write"]}`}, "agents is empty"},
		"no scopes":              {0o600, []string{`{"name":"a","sha256":"` + Hash("x") + `","agents":["*"]}`}, `token "a": scopes is empty: list what it permits`},
		"no name":                {0o600, []string{`{"sha256":"` + Hash("x") + `"}`}, ":1: the entry has no name"},
		"the name of nobody":     {0o600, []string{line("open", "x")}, "that of requests without a token"},
		"unknown scope":          {0o600, []string{strings.Replace(good, "traces:write", "all", 1)}, `unknown scope "all"`},
		"one token, two entries": {0o600, []string{good, line("other", token)}, "same token"},
		"one name, two entries":  {0o600, []string{good, line("shop", "x")}, `named "shop"`},
		"two objects on a line":  {0o600, []string{good + good}, "want {name"},
	}
	for name, c := range cases {
		_, err := Open(writeTokens(t, c.mode, c.lines...), "127.0.0.1:1", slog.New(slog.DiscardHandler))
		switch {
		case err == nil:
			t.Errorf("%s: accepted", name)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		case strings.Contains(err.Error(), token), strings.Contains(err.Error(), Hash(token)):
			t.Errorf("%s: the error contains the secret: %v", name, err)
		}
	}
}

// The current content of the file applies, and a broken change does not (package reload).
func TestChangeTakesEffectWithoutRestart(t *testing.T) {
	path := writeTokens(t, 0o600, line("shop", token))
	keeper, log := open(t, path)
	rewrite(t, path, 0o600, line("shop", token), line("new", "a new token"))
	later := time.Now().Add(reload.Recheck)
	if got := len(keeper.entries.Current(later)); got != 2 {
		t.Fatalf("%d entries after the change, want 2", got)
	}
	rewrite(t, path, 0o600, "broken")
	if got := len(keeper.entries.Current(later.Add(reload.Recheck))); got != 2 {
		t.Errorf("%d entries after a broken change, want the last good 2", got)
	}
	if !strings.Contains(log.String(), "previous tokens stay valid") {
		t.Errorf("a broken change was not reported: %s", log)
	}
}

// The credential decides the source.
func TestSourceIsTheCredentials(t *testing.T) {
	entry := func(name, more string) string {
		return `{"name":"` + name + `","sha256":"` + Hash(name) + `","agents":["*"],` + more + `}`
	}
	keeper, _ := open(t, writeTokens(t, 0o600,
		entry("ann", `"scopes":["messages:write"],"source":"human"`), entry("b", `"scopes":["messages:write"],"source":"agent"`), entry("r", `"scopes":["runtime"]`)))
	for name, want := range map[string]message.Source{"ann": message.Human, "b": message.Agent} {
		if grant, err := keeper.Authorize(name, MessagesWrite); err != nil || grant.Source != want || grant.Name != name {
			t.Errorf("%s: %+v, error %v", name, grant, err)
		}
	}
	if _, err := keeper.Authorize("r", MessagesWrite); !errors.Is(err, ErrScope) {
		t.Errorf("a runtime signs: %v", err)
	}
	for name, c := range map[string]struct{ more, want string }{
		"no source":           {`"scopes":["messages:write"]`, "needs a source"},
		"another source":      {`"scopes":["messages:write"],"source":"god"`, "god"},
		"signer and receiver": {`"scopes":["messages:write","runtime"],"source":"human"`, "use two entries"},
	} {
		_, err := Open(writeTokens(t, 0o600, entry("x", c.more)), "127.0.0.1:1", slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	anyone, err := Open("", "127.0.0.1:1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if grant, err := anyone.Authorize("", MessagesWrite); err != nil || grant.Source != message.Anonymous {
		t.Errorf("open: %+v, error %v", grant, err)
	}
}

// A group may read a token file only if it is root's and the service is not root: a mounted secret.
func TestProtectionOfTokenFiles(t *testing.T) {
	const service = 10001
	for _, c := range []struct {
		mode  os.FileMode
		owner int
		want  bool
	}{
		{0o600, service, true},
		{0o400, 0, true},
		{0o440, 0, true},
		{0o640, 0, true},
		{0o440, service, false},
		{0o440, -1, false},
		{0o460, 0, false},
		{0o444, 0, false},
	} {
		if got := protected(c.mode, c.owner, service); got != c.want {
			t.Errorf("mode %#o of user %d: %v", c.mode, c.owner, got)
		}
	}
	if protected(0o440, 0, 0) {
		t.Error("a service of root accepts a file that a group may read")
	}
}
