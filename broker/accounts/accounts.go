package accounts

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// FileName is the name of the configuration in Config.Dir.
const FileName = "accounts.conf"

// Config configures the users and how they log in.
type Config struct {
	Dir         string          // for the configuration and the secrets
	Account     string          // of streams and services; the agents' account has the same name with the suffix "_AGENTS"
	Agents      []string        // ids of the agents that publish on NATS directly
	Use         stream.AgentUse // what these agents publish in addition to traces
	ObjectStore string          // the bucket to which the exporter copies bundles; empty is none
	Passwords   bool            // log in by user and password, not by nkey
}

// User is a user of the configuration: a role or an agent.
type User struct {
	Role   stream.Role `json:"role,omitempty"`
	Agent  string      `json:"agent,omitempty"`
	Login  string      `json:"login"` // the public nkey, or the user's name
	Inbox  string      `json:"inbox_prefix"`
	Secret string      `json:"secret_file"` // the nkey's seed, or the password

	hash   string // of the password
	rights stream.Rights
}

// Write creates the missing secrets and writes the configuration. It returns the
// users in the order of the file.
func Write(cfg Config) ([]User, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	users := cfg.users()
	logins := make(map[string]*User, len(users))
	for i := range users {
		u := &users[i]
		if err := u.credential(cfg.Passwords); err != nil {
			return nil, fmt.Errorf("credential of %s: %w", u.who(), err)
		}
		if other := logins[u.Login]; other != nil {
			return nil, fmt.Errorf("%s and %s have the same credential: remove one of %s and %s, and run the command again", other.who(), u.who(), other.Secret, u.Secret)
		}
		logins[u.Login] = u
	}
	if err := durable.WriteFile(filepath.Join(cfg.Dir, FileName), cfg.render(users), 0o600); err != nil {
		return nil, err
	}
	return users, nil
}

func (c *Config) validate() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	var faults []error
	if !schema.PlainName(c.Account) {
		faults = append(faults, fmt.Errorf("account %q: want 1 to 64 of a-z, A-Z, 0-9, _ and -", c.Account))
	}
	if strings.Trim(c.ObjectStore, letters) != "" {
		faults = append(faults, fmt.Errorf("object store %q: want letters of a-z, A-Z, 0-9, _ and -", c.ObjectStore))
	}
	given := make(map[string]bool, len(c.Agents))
	for i, agent := range c.Agents {
		switch {
		case agent == "" || len(agent) > schema.MaxIDBytes || !utf8.ValidString(agent):
			faults = append(faults, fmt.Errorf("agent %d, %.80q: want 1 to %d bytes of UTF-8", i+1, agent, schema.MaxIDBytes))
		case strings.HasSuffix(agent, "*"): // a token takes it as a pattern, but a user is that of one agent
			faults = append(faults, fmt.Errorf("agent %d, %.80q: a user is for one agent, not for a pattern: name each agent by its id", i+1, agent))
		case given[agent]:
			faults = append(faults, fmt.Errorf("agent %d, %.80q: is given twice", i+1, agent))
		}
		given[agent] = true
	}
	return errors.Join(faults...)
}

// users returns the roles, then the agents in the given order.
func (c *Config) users() []User {
	ending := ".nk"
	if c.Passwords {
		ending = ".password"
	}
	users := make([]User, 0, len(stream.Roles())+len(c.Agents))
	for _, role := range stream.Roles() {
		users = append(users, User{
			Role: role, Login: "service." + string(role), Inbox: role.Inbox(), rights: role.Rights(c.ObjectStore),
			Secret: filepath.Join(c.Dir, "services", string(role)+ending),
		})
	}
	for _, agent := range c.Agents {
		users = append(users, User{
			Agent: agent, Login: "agent." + subject.Token(agent), Inbox: stream.AgentInbox(agent), rights: stream.AgentRights(agent, c.Use),
			Secret: filepath.Join(c.Dir, "agents", durable.SafeName(agent)+ending),
		})
	}
	return users
}

func (u *User) who() string {
	if u.Agent != "" {
		return fmt.Sprintf("agent %q", u.Agent)
	}
	return "service " + string(u.Role)
}
