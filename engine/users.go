package engine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// Database is the one the pipeline works in.
const Database = "plumbline"

// The users of the engine beside its own session.
const (
	adminUser   = "admin"   // migrations and tests: everything
	serviceUser = "service" // the four services: read and insert
	readerUser  = "reader"  // people and dashboards: read
)

// user is one entry of users.xml.
type user struct {
	Name           string
	PasswordSHA256 string
	Profile        string
	Grants         []string
}

// passwords maps a user's name to its generated password. They are kept with
// the data, so that a dashboard's connection survives a restart.
type passwords map[string]string

func (p passwords) users() []user {
	everyone := []user{
		{Name: adminUser, Profile: "default", Grants: []string{"ALL ON *.*"}},
		{Name: serviceUser, Profile: "default", Grants: []string{
			"SELECT, INSERT ON " + Database + ".*",
			// An ambiguous insert is looked up among the running queries; the
			// preflight reads settings and disks.
			"SELECT ON system.processes", "SELECT ON system.parts", "SELECT ON system.disks",
			"SELECT ON system.settings", "SELECT ON system.merge_tree_settings", "SELECT ON system.server_settings",
		}},
		{Name: readerUser, Profile: "reader", Grants: []string{"SELECT ON " + Database + ".*"}},
	}
	for i := range everyone {
		sum := sha256.Sum256([]byte(p[everyone[i].Name]))
		everyone[i].PasswordSHA256 = hex.EncodeToString(sum[:])
	}
	return everyone
}

// loadPasswords reads the passwords of a data directory and makes them on its
// first use.
func loadPasswords(dir string) (passwords, error) {
	path := filepath.Join(dir, "passwords.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makePasswords(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the engine's passwords: %w", err)
	}
	var p passwords
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("read the engine's passwords from %s: %w", path, err)
	}
	if p[adminUser] == "" || p[serviceUser] == "" || p[readerUser] == "" {
		return nil, fmt.Errorf("%s lacks a password: remove it to have new ones made", path)
	}
	return p, nil
}

func makePasswords(path string) (passwords, error) {
	p := passwords{adminUser: rand.Text(), serviceUser: rand.Text(), readerUser: rand.Text()}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := writeFile(path, b); err != nil {
		return nil, fmt.Errorf("keep the engine's passwords: %w", err)
	}
	return p, nil
}

// dsn is the address of a database for clickhouse-go.
func (p passwords) dsn(user string, port int, database string) string {
	u := url.URL{
		Scheme: "clickhouse",
		User:   url.UserPassword(user, p[user]),
		Host:   "127.0.0.1:" + strconv.Itoa(port),
		Path:   "/" + database,
	}
	return u.String()
}
