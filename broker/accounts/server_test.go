package accounts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

// site is a server with the accounts of a configuration.
type site struct {
	t       testing.TB
	address string
	server  *server.Server
	users   map[string]accounts.User // by role or agent
	log     *protocol
}

// serve writes the configuration and runs a server on it until the test ends.
func serve(t testing.TB, cfg accounts.Config) *site {
	t.Helper()
	cfg.Account = "PLUMBLINE"
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	users, err := accounts.Write(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, users: map[string]accounts.User{}, log: &protocol{}}
	for _, u := range users {
		s.users[string(u.Role)+u.Agent] = u
	}
	s.start(cfg.Dir, fmt.Sprintf("accounts { include %q }", accounts.FileName))
	return s
}

// start runs a server with a configuration.
func (s *site) start(dir, configuration string) {
	t := s.t
	t.Helper()
	file := filepath.Join(dir, "server.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream { store_dir: %q, sync_interval: always }\nmax_payload: 8MB\n%s", filepath.Join(dir, "store"), configuration)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs = true
	if s.server, err = server.NewServer(options); err != nil {
		t.Fatal(err)
	}
	s.server.SetLoggerV2(s.log, false, true, false)
	s.server.Start()
	t.Cleanup(s.server.WaitForShutdown)
	t.Cleanup(s.server.Shutdown)
	if !s.server.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	s.address = s.server.Addr().String()
}

// broker returns the configuration of a role's connection to the broker.
func (s *site) broker(role stream.Role) stream.Config {
	u := s.users[string(role)]
	return stream.Config{URL: "nats://" + s.address, Name: string(role), NKeySeedFile: u.Secret, InboxPrefix: u.Inbox}
}

// client returns a role's connection after it has made or checked the topology.
func (s *site) client(role stream.Role) *stream.Client {
	s.t.Helper()
	client, err := stream.Connect(s.t.Context(), s.broker(role))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	pipelinetest.EnsureTopology(s.t, client)
	return client
}

// connect connects a user by its role or agent.
func (s *site) connect(who string, further ...nats.Option) *nats.Conn {
	s.t.Helper()
	u := s.users[who]
	login, err := nats.NkeyOptionFromSeed(u.Secret)
	if err != nil {
		s.t.Fatal(err)
	}
	return dial(s.t, s.address, append([]nats.Option{nats.Name(who), nats.CustomInboxPrefix(u.Inbox), login}, further...)...)
}

func dial(t testing.TB, address string, options ...nats.Option) *nats.Conn {
	t.Helper()
	options = append(options, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // the test uses LastError
	conn, err := nats.Connect("nats://"+address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// refused reports whether the server refused the last operation of the connection on a subject.
func refused(t testing.TB, conn *nats.Conn, subject string) bool {
	t.Helper()
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	err := conn.LastError()
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "permissions violation") && strings.Contains(err.Error(), `"`+subject+`"`)
}

// protocol collects, from the server's log, the subjects that clients publish on, and what the
// server refuses.
type protocol struct {
	mu        sync.Mutex
	used      map[string]map[string]bool // connection name → subjects
	violation []string
}

// operation matches what a client publishes: the connection's name and the subject.
var operation = regexp.MustCompile(`:go:([^"]*)" - "[^"]*" - <<- \[(?:PUB|HPUB) (\S+)`)

func (p *protocol) Tracef(format string, args ...any) {
	m := operation.FindStringSubmatch(fmt.Sprintf(format, args...))

	if m == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[string]map[string]bool{}
	}
	if p.used[m[1]] == nil {
		p.used[m[1]] = map[string]bool{}
	}
	p.used[m[1]][m[2]] = true
}

func (p *protocol) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, "Violation") {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.violation = append(p.violation, text)
	}
}

func (*protocol) Noticef(string, ...any) {}
func (*protocol) Warnf(string, ...any)   {}
func (*protocol) Fatalf(string, ...any)  {}
func (*protocol) Debugf(string, ...any)  {}

// uses reports whether a client has published on a subject that a right covers.
func (p *protocol) uses(client, right string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for subject := range p.used[client] {
		if server.SubjectMatchesFilter(subject, right) {
			return true
		}
	}
	return false
}

func (p *protocol) violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.violation...)
}
