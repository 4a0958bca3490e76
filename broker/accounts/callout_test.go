package accounts_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// calloutSite starts a server and the callout of docs/NATS.md. agentOf returns the agent that a token belongs
// to; validFor is how long a connection may last until the server asks again.
func calloutSite(t *testing.T, validFor time.Duration, agentOf func(token string) (agent string, known bool)) *site {
	t.Helper()
	dir := t.TempDir()
	users, err := accounts.Write(accounts.Config{Dir: dir, Account: "PLUMBLINE"})
	if err != nil {
		t.Fatal(err)
	}
	issuer, callout := pair(t, nkeys.CreateAccount), pair(t, nkeys.CreateUser)
	s := &site{t: t, users: map[string]accounts.User{}, log: &protocol{}}
	for _, u := range users {
		s.users[string(u.Role)] = u
	}
	s.start(dir, fmt.Sprintf(`
		accounts {
			include %q
			AUTH: { users: [ {nkey: %q} ] }
		}
		authorization {
			auth_callout { issuer: %q, account: AUTH, auth_users: [ %q ], allowed_accounts: [ PLUMBLINE_AGENTS ] }
		}`, accounts.FileName, public(t, callout), public(t, issuer), public(t, callout)))
	serveCallout(t, s.address, issuer, callout, validFor, agentOf)
	return s
}

// This is the recipe of docs/NATS.md: a service of the operator determines which agent a token
// belongs to, and the server grants that agent's rights.
func TestAuthCallout(t *testing.T) {
	s := calloutSite(t, time.Hour, func(token string) (string, bool) {
		agent, known := map[string]string{"token-of-a": "a", "token-of-b": "did:web:b.example"}[token]
		return agent, known
	})
	s.client(stream.RoleOperator) // a service logs in as without the callout

	login := func(token, agent string) []nats.Option {
		return []nats.Option{nats.Token(token), nats.CustomInboxPrefix(stream.AgentInbox(agent))}
	}
	for token, agent := range map[string]string{"token-of-a": "a", "token-of-b": "did:web:b.example"} {
		if _, err := publish(t, dial(t, s.address, login(token, agent)...), agent, nil); err != nil {
			t.Errorf("%s: %v", agent, err)
		}
	}
	checkRefusals(t, dial(t, s.address, login("token-of-a", "a")...))
	for _, token := range []string{"", "another"} {
		if conn, err := nats.Connect("nats://"+s.address, nats.Token(token)); err == nil {
			conn.Close()
			t.Errorf("token %q: the server accepts it", token)
		}
	}
}

// A connection of a token that was revoked ends when the user that the callout returned expires.
func TestRevokedTokenOfCallout(t *testing.T) {
	var revoked atomic.Bool
	s := calloutSite(t, time.Second, func(token string) (string, bool) { return "a", token == "token-of-a" && !revoked.Load() })
	closed := make(chan struct{})
	conn := dial(t, s.address, nats.Token("token-of-a"), nats.CustomInboxPrefix(stream.AgentInbox("a")), nats.ReconnectWait(time.Millisecond),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	revoked.Store(true)
	<-closed // the server ended the connection, and refused the next one
	if conn.Status() != nats.CLOSED {
		t.Errorf("the connection is %s", conn.Status())
	}
}

// serveCallout answers the server's authorization requests, as docs/NATS.md shows.
func serveCallout(t *testing.T, address string, issuer, callout nkeys.KeyPair, validFor time.Duration, agentOf func(string) (string, bool)) {
	conn := dial(t, address, nats.Nkey(public(t, callout), callout.Sign))
	answer := func(m *nats.Msg) error {
		asked, err := jwt.DecodeAuthorizationRequestClaims(string(m.Data))
		if err != nil {
			return err
		}
		response := jwt.NewAuthorizationResponseClaims(asked.UserNkey)
		response.Audience = asked.Server.ID
		if agent, known := agentOf(asked.ConnectOptions.Token); known {
			rights := stream.AgentRights(agent, stream.AgentUse{})
			user := jwt.NewUserClaims(asked.UserNkey)
			user.Name, user.Audience = agent, "PLUMBLINE_AGENTS"
			user.Expires = time.Now().Add(validFor).Unix()
			user.Pub.Allow.Add(rights.Publish...)
			user.Sub.Allow.Add(rights.Subscribe...)
			if response.Jwt, err = user.Encode(issuer); err != nil {
				return err
			}
		} else {
			response.Error = "unknown token"
		}
		signed, err := response.Encode(issuer)
		if err != nil {
			return err
		}
		return m.Respond([]byte(signed))
	}
	_, err := conn.QueueSubscribe("$SYS.REQ.USER.AUTH", "callout", func(m *nats.Msg) {
		if err := answer(m); err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func pair(t testing.TB, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	made, err := create()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func public(t testing.TB, pair nkeys.KeyPair) string {
	t.Helper()
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}
