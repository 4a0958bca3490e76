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

// template is the database that was migrated first. It stays for as long as the engine.
var template struct {
	sync.Mutex
	name   string
	tables []table // each after those that it reads
}

// table is a table or view, by what the server says of it.
type table struct {
	Name   string  `ch:"name"`
	Create string  `ch:"create_table_query"`
	Rows   *uint64 `ch:"total_rows"`
}

// Migrated makes a fresh database for the test with the tables that migrate makes, and
// returns its DSN for the administrator. Of a test binary's databases one is migrated, in
// about a second; the others are copied from it, in a tenth of that.
func Migrated(t testing.TB, migrate func(ctx context.Context, adminDSN string) error) string {
	t.Helper()
	dsn := Database(t)
	to := name(t, dsn)
	conn := connect(t, dsn)
	defer conn.Close()
	template.Lock()
	defer template.Unlock()
	if template.name == "" {
		makeTemplate(t, conn, dsn, migrate)
	}
	var made []table
	for left := template.tables; len(left) > 0; {
		var failed []table
		var err error
		for _, table := range left {
			create := strings.ReplaceAll(table.Create, template.name+".", to+".")
			if e := conn.Exec(t.Context(), create); e != nil { // a view of what comes later
				failed, err = append(failed, table), e
				continue
			}
			made = append(made, table)
			if table.Rows != nil && *table.Rows > 0 {
				exec(t.Context(), t, dsn, fmt.Sprintf("INSERT INTO %s.%s SELECT * FROM %s.%[2]s", to, table.Name, template.name))
			}
		}
		if len(failed) == len(left) {
			t.Fatalf("copy the tables of %s: %v", template.name, err)
		}
		left = failed
	}
	template.tables = made
	return dsn
}

func makeTemplate(t testing.TB, conn driver.Conn, dsn string, migrate func(ctx context.Context, adminDSN string) error) {
	t.Helper()
	const its = "test_template"
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + its
	if err := migrate(t.Context(), at.String()); err != nil {
		t.Fatal(err)
	}
	if err := conn.Select(t.Context(), &template.tables,
		"SELECT name, create_table_query, total_rows FROM system.tables WHERE database = '"+its+"' ORDER BY engine LIKE '%View', name"); err != nil {
		t.Fatal(err)
	}
	template.name = its
}

// name is that of the database in a DSN.
func name(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
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
