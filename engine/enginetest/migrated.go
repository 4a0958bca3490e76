package enginetest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// templates are the template databases, one for each server, by the server's address. They
// exist as long as the engine.
var templates struct {
	sync.Mutex
	tables map[string][]table // in order of their dependencies
}

// templateName is the name of the template database on each server.
const templateName = "test_template"

// table is a table or view, as the server describes it.
type table struct {
	Name   string  `ch:"name"`
	Create string  `ch:"create_table_query"`
	Rows   *uint64 `ch:"total_rows"`
}

// Migrated creates a fresh database for the test with the tables that migrate makes, and
// returns its DSN for the administrator. Only a template database of each server is migrated,
// in about a second; the others are copied from it, in a tenth of that time.
func Migrated(t testing.TB, migrate func(ctx context.Context, adminDSN string) error) string {
	t.Helper()
	dsn := Database(t)
	fill(t, dsn, migrate)
	return dsn
}

// MigratedShards is Migrated on every shard.
func MigratedShards(t testing.TB, migrate func(ctx context.Context, adminDSN string) error) []string {
	t.Helper()
	dsns := ShardedDatabase(t)
	for _, dsn := range dsns {
		fill(t, dsn, migrate)
	}
	return dsns
}

// fill creates the tables of a server's template in the empty database of a DSN.
func fill(t testing.TB, dsn string, migrate func(ctx context.Context, adminDSN string) error) {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	to := strings.TrimPrefix(at.Path, "/")
	conn := connect(t, dsn)
	defer conn.Close()
	templates.Lock()
	defer templates.Unlock()
	if templates.tables[at.Host] == nil {
		makeTemplate(t, conn, *at, migrate)
	}
	var made []table
	for left := templates.tables[at.Host]; len(left) > 0; {
		var failed []table
		var err error
		for _, table := range left {
			create := strings.NewReplacer(templateName+".", to+".", "'"+templateName+"'", "'"+to+"'").Replace(table.Create)
			if e := conn.Exec(t.Context(), create); e != nil { // a view that depends on a later table
				failed, err = append(failed, table), e
				continue
			}
			made = append(made, table)
			if table.Rows != nil && *table.Rows > 0 {
				exec(t.Context(), t, dsn, fmt.Sprintf("INSERT INTO %s.%s SELECT * FROM %s.%[2]s", to, table.Name, templateName))
			}
		}
		if len(failed) == len(left) {
			t.Fatalf("copy the tables of %s: %v", templateName, err)
		}
		left = failed
	}
	templates.tables[at.Host] = made
}

func makeTemplate(t testing.TB, conn driver.Conn, at url.URL, migrate func(ctx context.Context, adminDSN string) error) {
	t.Helper()
	at.Path = "/" + templateName
	if err := migrate(t.Context(), at.String()); err != nil {
		t.Fatal(err)
	}
	var tables []table
	if err := conn.Select(t.Context(), &tables,
		"SELECT name, create_table_query, total_rows FROM system.tables WHERE database = '"+templateName+"' ORDER BY engine LIKE '%View', name"); err != nil {
		t.Fatal(err)
	}
	if templates.tables == nil {
		templates.tables = map[string][]table{}
	}
	templates.tables[at.Host] = tables
}

func connect(t testing.TB, dsn string) driver.Conn {
	t.Helper()
	opts, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
