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

	"github.com/plumbline/plumbline/pipeline/durable"
)

// Database is the name of the database of the pipeline.
const Database = "plumbline"

// The users of the engine, in addition to the user of its own session.
const (
	adminUser    = "admin"    // migrations and tests: everything
	serviceUser  = "service"  // the four services: read and insert
	operatorUser = "operator" // operators who handle dead letters: read, including their bytes
	readerUser   = "reader"   // people and dashboards: read everything except those bytes
)

// readAll and notLetters are the rights of people. A dead letter is stored with its original
// bytes, which cannot be redacted.
const (
	readAll    = "GRANT SELECT ON " + Database + ".*"
	notLetters = "REVOKE SELECT(raw) ON " + Database + ".dead_letters"
)

// user is one entry of users.xml.
type user struct {
	Name           string
	PasswordSHA256 string
	Profile        string
	Access         []string // statements, without the user
}

// passwords maps a user's name to its generated password. The file is in the data
// directory, so a dashboard's connection survives a restart.
type passwords map[string]string

func (p passwords) users() []user {
	everyone := []user{
		{Name: adminUser, Profile: "default", Access: []string{"GRANT ALL ON *.*"}},
		{Name: serviceUser, Profile: "default", Access: []string{
			"GRANT SELECT, INSERT ON " + Database + ".*",
			// After an ambiguous insert, the service looks for it among the running queries and
			// checks whether writes have failed; the preflight reads settings and disks.
			"GRANT SELECT ON system.processes", "GRANT SELECT ON system.parts", "GRANT SELECT ON system.disks", "GRANT SELECT ON system.clusters",
			"GRANT SELECT ON system.events", "GRANT SELECT ON system.settings", "GRANT SELECT ON system.merge_tree_settings", "GRANT SELECT ON system.server_settings",
		}},
		{Name: operatorUser, Profile: "reader", Access: []string{readAll}},
		{Name: readerUser, Profile: "reader", Access: []string{readAll, notLetters}},
	}
	for i := range everyone {
		sum := sha256.Sum256([]byte(p[everyone[i].Name]))
		everyone[i].PasswordSHA256 = hex.EncodeToString(sum[:])
	}
	return everyone
}

// loadPasswords reads the passwords of a data directory. It generates those that are missing,
// also those that a loss of power erased.
func loadPasswords(dir string) (passwords, error) {
	path := filepath.Join(dir, "passwords.json")
	p := passwords{}
	b, err := os.ReadFile(path)
	if err == nil && !durable.Blank(b) {
		if err = json.Unmarshal(b, &p); err != nil {
			err = fmt.Errorf("%w: remove the file to get new passwords", err)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the engine's passwords from %s: %w", path, err)
	}
	if !p.complete() {
		return p, nil
	}
	if b, err = json.MarshalIndent(p, "", "  "); err == nil {
		err = durable.WriteFile(path, b, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the engine's passwords: %w", err)
	}
	return p, nil
}

// complete generates a password for every user without one, and reports whether there
// was such a user.
func (p passwords) complete() (made bool) {
	for _, name := range []string{adminUser, serviceUser, operatorUser, readerUser} {
		if p[name] == "" {
			p[name], made = rand.Text(), true
		}
	}
	return made
}

// dsn returns the address of a database for clickhouse-go.
func (p passwords) dsn(user string, port int, database string) string {
	u := url.URL{
		Scheme: "clickhouse",
		User:   url.UserPassword(user, p[user]),
		Host:   "127.0.0.1:" + strconv.Itoa(port),
		Path:   "/" + database,
	}
	return u.String()
}
