package accounts_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// recipe returns the n-th block in a language of docs/TENANTS.md, for a tenant and a database.
func recipe(t *testing.T, language string, n int, tenant, database string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/TENANTS.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```"+language+"\n")
	block, _, _ := strings.Cut(parts[n], "```")
	return strings.NewReplacer("acme.", database+".", "plumbline.", database+".", "plumbline>", database+">", "acme", tenant,
		"SHA256", fmt.Sprintf("%x", sha256.Sum256([]byte("password of "+tenant)))).Replace(block)
}

// rows are a tenant's view of the database.
type rows struct {
	t     *testing.T
	store *store.Store
	dsn   string
}

// viewOf opens a database as a tenant's user, or as the administrator if user is empty.
func viewOf(t *testing.T, e *engine.Engine, user, database string) *rows {
	t.Helper()
	at, err := url.Parse(e.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + database
	if user != "" {
		at.User = url.UserPassword(user, "password of "+user)
	}
	s, err := store.Open(t.Context(), store.Config{DSN: at.String(), Tenant: user, Stage: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &rows{t: t, store: s, dsn: at.String()}
}

// query returns the first column of a statement's rows.
func (r *rows) query(statement string) (values []string, err error) {
	result, err := r.store.Query(r.t.Context(), statement)
	if errors.Is(err, io.EOF) {
		return nil, nil // the statement has no result
	}
	if err != nil {
		return nil, err
	}
	for row, err := range result.Rows {
		if err != nil {
			return values, err
		}
		values = append(values, fmt.Sprint(row[0]))
	}
	return values, nil
}

// one is query for a statement that must not fail.
func (r *rows) one(statement string) []string {
	r.t.Helper()
	values, err := r.query(statement)
	if err != nil {
		r.t.Fatalf("%s: %v", statement, err)
	}
	return values
}

// refused requires that a statement is refused, with this reason.
func (r *rows) refused(statement, why string) {
	r.t.Helper()
	if values, err := r.query(statement); err == nil || !strings.Contains(err.Error(), why) {
		r.t.Errorf("%s: %v, %v; want it refused: %s", statement, values, err, why)
	}
}

// This tests tenants on one ClickHouse server, with users as in docs/TENANTS.md: east and west
// have a database each, north and south share one. No table, view or query shows a tenant
// anything of another, and no tenant can insert a row for another. North and south have an
// agent, a session and a trace with the same bytes; the services of both work.
func TestTenantsAreIsolated(t *testing.T) {
	databases := map[string]string{"east": "east", "west": "west", "north": "shared", "south": "shared"}
	e := engineWith(t, databases)
	administrator := viewOf(t, e, "", "shared")
	for statement := range strings.SplitSeq(strings.TrimSpace(recipe(t, "sql", 1, "", "shared")), ";\n") {
		administrator.one(strings.TrimSuffix(statement, ";"))
	}
	views := map[string]*rows{}
	for name, database := range databases {
		views[name] = viewOf(t, e, name, database)
	}
	both := tenantsOn(t, 1, "north", "south")
	for _, n := range both {
		n.publish(n.begin())
		n.serve(t, views[n.name].dsn)
	}
	for _, n := range both {
		n.seesItsOwn(views[n.name])
	}
	for _, name := range []string{"north", "south"} { // a row in every table, also where the services have written none
		for _, table := range views[name].one(evidence) {
			views[name].one("INSERT INTO " + table + " (tenant) VALUES ('" + name + "')")
		}
	}
	for name, other := range map[string]string{"north": "south", "south": "north", "east": "west", "west": "east"} {
		views[name].seesNothingOf(name, other, databases[other])
	}
	views["north"].seesNoQueryOf(views["south"])
	if seen := administrator.one("SELECT arrayStringConcat(arraySort(groupArray(concat(tenant)))) FROM visible_traces WHERE agent_id = 'x'"); seen[0] != "northsouth" {
		t.Errorf("the administrator sees the traces of %q", seen)
	}
}

// engineWith runs an engine with a user for each tenant, and creates the tables in their databases.
func engineWith(t *testing.T, databases map[string]string) *engine.Engine {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "users.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, database := range databases {
		n := 1
		if database != name {
			n = 2 // the recipe for a shared database
		}
		if err := os.WriteFile(filepath.Join(dir, "users.d", name+".xml"), []byte(recipe(t, "xml", n, name, database)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.Start(t.Context(), engine.Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, name := range databases {
		if err := database.Migrate(t.Context(), viewOf(t, e, "", name).dsn); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// serve runs the tenant's services until the test ends.
func (n *tenant) serve(t *testing.T, dsn string) {
	t.Helper()
	judging, watching, sealing := verifier.Default(), drift.Default(), exporter.Default()
	judging.Common, judging.ClickHouse.DSN = n.common(stream.RoleVerifier), dsn
	watching.Common, watching.ClickHouse.DSN, watching.Lateness = n.common(stream.RoleDrift), dsn, 50*time.Millisecond
	sealing.Common, sealing.ClickHouse.DSN, sealing.DataDir, sealing.Every = n.common(stream.RoleExporter), dsn, n.dir, 50*time.Millisecond
	for role, serve := range map[stream.Role]func(context.Context, *service.Env) error{
		stream.RoleVerifier: func(ctx context.Context, env *service.Env) error { return verifier.Serve(ctx, &judging, env) },
		stream.RoleDrift:    func(ctx context.Context, env *service.Env) error { return drift.Serve(ctx, &watching, env) },
		stream.RoleExporter: func(ctx context.Context, env *service.Env) error { return exporter.Serve(ctx, &sealing, env) },
	} {
		env := pipelinetest.Env(t, string(role))
		pipelinetest.Go(t, func(ctx context.Context) error { return serve(ctx, env) })
		pipelinetest.Await(t, string(role)+" of "+n.name, func() bool { return env.Health.Readiness().Ready })
	}
}

// common returns the configuration of one of the tenant's services.
func (n *tenant) common(role stream.Role) config.Common {
	common, broker := config.DefaultCommon(""), n.broker(role)
	common.Tenant, common.DrainBudget = n.name, 20*time.Second
	common.NATS.URL, common.NATS.NKeySeedFile, common.NATS.InboxPrefix = broker.URL, broker.NKeySeedFile, broker.InboxPrefix
	return common
}

// seesItsOwn requires the services' results for the tenant's trace.
func (n *tenant) seesItsOwn(r *rows) {
	r.t.Helper()
	for _, table := range []string{"traces", "verdicts", "drift_points", "sessions", "session_verdicts", "bundles", "seal_runs", "cards",
		"visible_traces", "current_verdicts", "visible_drift_points", "visible_bundles", "session_summary"} {
		pipelinetest.Await(r.t, n.name+" to see one row in "+table, func() bool { return r.one("SELECT toString(count()) FROM " + table)[0] == "1" })
	}
	pipelinetest.Await(r.t, n.name+" to see its ledger", func() bool { return r.one("SELECT toString(count()) FROM visible_ledger")[0] != "0" })
	if bundles, err := filepath.Glob(filepath.Join(n.dir, "bundles", "*", "*.tar.gz")); err != nil || len(bundles) != 1 {
		r.t.Errorf("%s has bundles %q, %v", n.name, bundles, err)
	}
}

// Queries for the tables and views with tenants' rows, and for the tables alone.
const (
	withTenant = "SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'tenant'"
	evidence   = withTenant + " AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')"
)

// seesNothingOf tries to read and to insert rows of another tenant, in every table and view.
func (r *rows) seesNothingOf(own, other, database string) {
	r.t.Helper()
	for _, object := range r.one(withTenant) {
		if seen := r.one("SELECT concat(tenant) FROM " + object + " WHERE tenant != '" + own + "' LIMIT 1"); len(seen) > 0 {
			r.t.Errorf("%s sees a row of %s in %s", own, seen, object)
		}
	}
	why := "Not enough privileges"
	if r.one("SELECT currentDatabase()")[0] == database {
		why = "is violated"
	} else {
		for _, table := range []string{"traces", "visible_traces", "ledger"} {
			r.refused("SELECT count() FROM "+database+"."+table, why)
		}
	}
	for _, table := range r.one(evidence) {
		r.refused("INSERT INTO "+database+"."+table+" (tenant) VALUES ('"+other+"')", why)
	}
	if database == "shared" {
		r.refused("INSERT INTO schema_migrations (version_id, is_applied) VALUES (1000000, 1)", "Not enough privileges")
	}
}

// seesNoQueryOf looks for a query of another tenant while it runs.
func (r *rows) seesNoQueryOf(other *rows) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err := other.store.Query(ctx, "SELECT sleepEachRow(1) FROM numbers(100) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0")
		if err != nil {
			return
		}
		for _, err := range result.Rows {
			if err != nil {
				return
			}
		}
	}()
	const running = "SELECT user FROM system.processes WHERE query LIKE 'SELECT sleepEachRow%'"
	pipelinetest.Await(r.t, "the other's query to run", func() bool { return len(other.one(running)) == 1 })
	if seen := r.one(running); len(seen) > 0 {
		r.t.Errorf("a query of %s is seen", seen)
	}
	cancel()
	<-ended
}
