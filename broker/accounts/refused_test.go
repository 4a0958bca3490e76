package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// A service that lacks a right, or the prefix of its inboxes, reports it; the broker leaves such
// requests unanswered. A service waits for streams that another process may create.
func TestMissingRightsAreReported(t *testing.T) {
	s := serve(t, accounts.Config{})
	for name, c := range map[string]struct {
		change func(*stream.Config)
		waits  bool
		want   string
	}{
		"no streams, and no right to make them": {func(*stream.Config) {}, true, "plumbline migrate --nats-url"},
		"no prefix of inboxes":                  {func(c *stream.Config) { c.InboxPrefix = "" }, false, "inbox prefix"},
	} {
		broker := s.broker(stream.RoleVerifier)
		c.change(&broker)
		client, err := stream.Connect(t.Context(), broker)
		if err != nil {
			t.Fatal(err)
		}
		err = client.EnsureTopology(t.Context())
		if errors.Is(err, stream.ErrRefused) == c.waits || !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "user "+s.users["verifier"].Login+" of verifier") {
			t.Errorf("%s: %v", name, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// services is all services, on a server where each has its own user.
type services struct {
	*site
	rig *pipelinetest.Rig
}

func startServices(t *testing.T, cfg accounts.Config) *services {
	s := &services{site: serve(t, cfg)}
	s.rig = pipelinetest.NewOn(t, s.broker(stream.RoleOperator))
	return s
}

// serve runs a service with another role's user until ctx ends or the service ends by itself.
func (s *services) serve(ctx context.Context, role, user stream.Role, objectStore string, env *service.Env) error {
	common, broker := s.rig.Common(), s.broker(user)
	common.NATS.NKeySeedFile, common.NATS.InboxPrefix = broker.NKeySeedFile, broker.InboxPrefix
	dir := s.t.TempDir()
	switch role {
	case stream.RoleIngest:
		cfg := ingest.Default()
		cfg.Common = common
		cfg.HandshakeKeyFile, cfg.MicroKeyFile = filepath.Join(dir, "handshake.key"), filepath.Join(dir, "micro.key")
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return ingest.ServeOn(ctx, listener, &cfg, env, nil)
	case stream.RoleVerifier:
		cfg := verifier.Default()
		cfg.Common, cfg.ClickHouse = common, s.rig.ClickHouse()
		return verifier.Serve(ctx, &cfg, env)
	case stream.RoleDrift:
		cfg := drift.Default()
		cfg.Common, cfg.ClickHouse = common, s.rig.ClickHouse()
		return drift.Serve(ctx, &cfg, env)
	case stream.RoleExporter:
		cfg := exporter.Default()
		cfg.Common, cfg.ClickHouse, cfg.DataDir, cfg.Copies.ObjectStore = common, s.rig.ClickHouse(), dir, objectStore
		return exporter.Serve(ctx, &cfg, env)
	}
	return fmt.Errorf("no service %s", role)
}

// A service with another service's user ends with an error that names the refused subject, or
// readiness names it.
func TestForeignUserIsReported(t *testing.T) {
	s := startServices(t, accounts.Config{})
	roles := []stream.Role{stream.RoleIngest, stream.RoleVerifier, stream.RoleDrift, stream.RoleExporter}
	for _, role := range roles {
		for _, user := range roles {
			if role == user {
				continue
			}
			t.Run(string(role)+" as "+string(user), func(t *testing.T) {
				t.Parallel()
				began, env, ended := time.Now(), pipelinetest.Env(t, string(role)), make(chan error, 1)
				ctx, stop := context.WithCancel(t.Context())
				go func() { ended <- s.serve(ctx, role, user, "", env) }()
				var err error
				pipelinetest.Await(t, "the refused subject", func() bool {
					select {
					case err = <-ended:
						return true
					default:
						return strings.Contains(fmt.Sprint(env.Health.Readiness().Down), `Permissions Violation for `)
					}
				})
				t.Logf("after %s: %v %v", time.Since(began).Round(time.Millisecond), err, env.Health.Readiness().Down)
				stop()
				if err == nil {
					//lint:ignore errcheck it started; how it ends is asked elsewhere
					<-ended
				} else if !errors.Is(err, stream.ErrRefused) || !strings.Contains(err.Error(), "user "+s.users[string(user)].Login+" of "+string(role)) {
					t.Errorf("it ended with: %v", err)
				}
			})
		}
	}
}

// An exporter whose user has no right to its object store ends; the error says what to do.
func TestRefusedObjectStoreEndsTheStart(t *testing.T) {
	s := startServices(t, accounts.Config{ObjectStore: "bundles"})
	env := pipelinetest.Env(t, "exporter")
	err := s.serve(t.Context(), stream.RoleExporter, stream.RoleExporter, "zz", env)
	if !errors.Is(err, stream.ErrRefused) {
		t.Fatalf("it ended with: %v", err)
	}
	for _, part := range []string{`"$JS.API.STREAM.CREATE.OBJ_zz"`, s.users["exporter"].Login, "plumbline nats-config --object-store zz", "object_store of the exporter"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}
