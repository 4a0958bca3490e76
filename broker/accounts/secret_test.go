package accounts_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/broker/accounts"
)

// Secrets are generated once, in files that nobody else can read, and are in no other file.
func TestSecrets(t *testing.T) {
	for name, passwords := range map[string]bool{"nkeys": false, "passwords": true} {
		t.Run(name, func(t *testing.T) {
			cfg := accounts.Config{Dir: t.TempDir(), Account: "PLUMBLINE", Agents: []string{"a", "../b\n# c", strings.Repeat("ä", 256)}, Passwords: passwords}
			first := write(t, cfg)
			again := write(t, cfg)
			configuration, err := os.ReadFile(filepath.Join(cfg.Dir, accounts.FileName))
			if err != nil {
				t.Fatal(err)
			}
			for i, u := range first {
				secret, err := os.ReadFile(u.Secret)
				if err != nil {
					t.Fatal(err)
				}
				if info, err := os.Stat(u.Secret); err != nil || info.Mode().Perm() != 0o600 || again[i].Login != u.Login {
					t.Errorf("%s: mode %v, login %s, then %s: %v", u.Secret, info.Mode(), u.Login, again[i].Login, err)
				}
				if bytes.Contains(configuration, bytes.TrimSpace(secret)) {
					t.Errorf("the configuration holds the secret of %s", u.Secret)
				}
			}
			if err := filepath.WalkDir(cfg.Dir, func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				info, err := entry.Info()
				if err == nil && info.Mode().Perm() != 0o600 {
					t.Errorf("%s: mode %v", path, info.Mode())
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func write(t testing.TB, cfg accounts.Config) []accounts.User {
	t.Helper()
	users, err := accounts.Write(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return users
}

func TestWhatIsRefused(t *testing.T) {
	good := func(t *testing.T) accounts.Config {
		return accounts.Config{Dir: t.TempDir(), Account: "PLUMBLINE", Agents: []string{"a", "b"}}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, cfg *accounts.Config)
		want   string
	}{
		"an account's name":        {func(_ *testing.T, c *accounts.Config) { c.Account = `x" }` }, "account"},
		"an object store's name":   {func(_ *testing.T, c *accounts.Config) { c.ObjectStore = "a.>" }, "object store"},
		"an agent twice":           {func(_ *testing.T, c *accounts.Config) { c.Agents = append(c.Agents, "a") }, "agent 3"},
		"an agent without an id":   {func(_ *testing.T, c *accounts.Config) { c.Agents = append(c.Agents, "") }, "agent 3"},
		"an id that is too long":   {func(_ *testing.T, c *accounts.Config) { c.Agents = append(c.Agents, strings.Repeat("x", 513)) }, "agent 3"},
		"a secret others can read": {func(t *testing.T, c *accounts.Config) { chmod(t, write(t, *c)[7].Secret) }, "chmod 600"},
		"an empty secret":          {func(t *testing.T, c *accounts.Config) { overwrite(t, write(t, *c)[7].Secret, nil) }, "holds no secret"},
		"a file that is no seed": {func(t *testing.T, c *accounts.Config) {
			overwrite(t, write(t, *c)[7].Secret, bytes.Repeat([]byte("x"), 58))
		}, "contains no nkey seed"},
		"one seed of several agents": {func(t *testing.T, c *accounts.Config) { copySecret(t, write(t, *c)) }, "same credential"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good(t)
			c.change(t, &cfg)
			if _, err := accounts.Write(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func chmod(t *testing.T, path string) {
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, text []byte) {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copySecret(t *testing.T, users []accounts.User) {
	text, err := os.ReadFile(users[6].Secret)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, users[7].Secret, text)
}
