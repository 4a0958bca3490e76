package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/pressly/goose/v3"

	"github.com/plumbline/plumbline/schema"
)

// Cluster names the servers over which the tables are distributed (docs/adr/0016). The zero value
// means one server.
type Cluster struct {
	Name          string // its name in the servers' <remote_servers>
	WithoutKeeper bool   // a shard is one server, and a migration changes only the server of the DSN
}

// layout is how a cluster distributes the tables of a database. For each table T, T_local holds
// the rows of one shard, and T is a Distributed table over all shards. Statements and views that
// name T need not know about shards.
type layout struct {
	Cluster
	database string
	shards   int
}

const localSuffix = "_local"

// shardedBy names the column that chooses a row's shard, in addition to the tenant, where it is
// not the agent. Each one is part of its table's sort key. All copies of a row are therefore on
// one shard, where FINAL collapses them.
var shardedBy = map[string]string{
	"coherence_results": "initiator_agent_id",
	"task_results":      "initiator_agent_id",
	"dead_letters":      "digest",
	"dead_letter_marks": "digest",
	"bundle_copies":     "sha256",
	"ledger":            "ledger",
	"card_positions":    "stream_created",
}

// distributed returns the engine of the table over all shards, in the form in which the server
// prints it. The number of shards is part of it: adding a shard to the cluster must not change
// the shard of copies of rows that are already stored.
func (l layout) distributed(table string) string {
	return fmt.Sprintf("Distributed('%s', '%s', '%s', sipHash64(tenant, %s) %% %d)",
		l.Name, l.database, table+localSuffix, cmp.Or(shardedBy[table], "agent_id"), l.shards)
}

// replicated returns the engine of a shard's part of a table. The replicas of a shard share one
// path in Keeper. The macros of the servers name the shard and the replica.
func (l layout) replicated(table, version string) string {
	arguments := []string{fmt.Sprintf("'/clickhouse/tables/{shard}/%s/%s'", l.database, table+localSuffix), "'{replica}'"}
	if version != "" {
		arguments = append(arguments, version)
	}
	return "ReplicatedReplacingMergeTree(" + strings.Join(arguments, ", ") + ")"
}

// onCluster returns the clause that sends a statement to every server.
func (l layout) onCluster() string {
	if l.WithoutKeeper {
		return ""
	}
	return " ON CLUSTER '" + l.Name + "'"
}

// The first line of each kind of statement in a migration, and the engine of a table.
var (
	statementHead = regexp.MustCompile(`(?m)^(CREATE TABLE IF NOT EXISTS|CREATE OR REPLACE VIEW|ALTER TABLE) (\w+)( AS| MODIFY SETTING .+)?$`)
	tableEngine   = regexp.MustCompile(`(?m)^ENGINE = ReplacingMergeTree(?:\((\w+)\))?$`)
)

// durableHead begins the settings of a table. These settings do not make a replica sync a part
// that it fetches from another replica. Such a part may have been merged there, and it may
// replace parts that were synced here.
const (
	durableHead  = "\nSETTINGS fsync_after_insert = 1"
	fetchSetting = "min_compressed_bytes_to_fsync_after_fetch = 1"
)

// statementsOf returns the statements of a migration, split as goose splits them.
func statementsOf(migration string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(migration), ";"), ";\n")
}

// statements returns the statements of a migration: unchanged for one server, or translated for the cluster.
func (l layout) statements(migration string) (all []string, err error) {
	if l.Name == "" {
		return statementsOf(migration), nil
	}
	for _, text := range statementsOf(migration) {
		made, err := l.statement(text)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
}

// statement translates a statement for one server into those for the cluster. A view stays
// unchanged. A table becomes the shard's part, followed by the table over all shards. That table
// holds no rows, and is created again with the same columns. A setting applies only to the
// shard's part.
func (l layout) statement(text string) ([]string, error) {
	heads := statementHead.FindAllStringSubmatch(text, -1)
	if len(heads) != 1 {
		return nil, fmt.Errorf("the statement has %d lines of a form that can be translated for a cluster, want one", len(heads))
	}
	head, verb, table, rest := heads[0][0], heads[0][1], heads[0][2], heads[0][3]
	if verb == "CREATE OR REPLACE VIEW" {
		return []string{strings.Replace(text, head, verb+" "+table+l.onCluster()+rest, 1)}, nil
	}
	text = strings.Replace(text, head, verb+" "+table+localSuffix+l.onCluster()+rest, 1)
	if strings.HasPrefix(rest, " MODIFY SETTING ") {
		return []string{text}, nil
	}
	if verb == "CREATE TABLE IF NOT EXISTS" && !l.WithoutKeeper {
		engine := tableEngine.FindStringSubmatch(text)
		if engine == nil {
			return nil, fmt.Errorf("table %s: the statement has no line ENGINE = ReplacingMergeTree", table)
		}
		text = strings.Replace(text, engine[0], "ENGINE = "+l.replicated(table, engine[1]), 1)
		if !strings.Contains(text, durableHead) {
			return nil, fmt.Errorf("table %s: the statement has no line that begins with %q", table, strings.TrimSpace(durableHead))
		}
		text = strings.Replace(text, durableHead, "\nSETTINGS "+fetchSetting+", "+strings.TrimPrefix(durableHead, "\nSETTINGS "), 1)
	}
	over := fmt.Sprintf("CREATE OR REPLACE TABLE %s%s AS %s ENGINE = %s", table, l.onCluster(), table+localSuffix, l.distributed(table))
	return []string{text, over}, nil
}

// steps returns the migrations. On a cluster, the first one creates the database on every server.
//
// They are functions and not files, because goose's reader of files takes a buffer of 4 MiB for each line, which a test
// with the race detector allocates again and again.
func (l layout) steps() ([]*goose.Migration, error) {
	files := Migrations()
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]*goose.Migration, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		statements, err := l.statements(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if i == 0 && l.Name != "" && !l.WithoutKeeper {
			statements = append([]string{"CREATE DATABASE IF NOT EXISTS " + l.database + l.onCluster()}, statements...)
		}
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		steps[i] = goose.NewGoMigration(version, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
			if l.Name != "" {
				ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clusterPins))
			}
			for _, statement := range statements {
				if _, err := db.ExecContext(ctx, statement); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		}}, nil)
	}
	return steps, nil
}

// clusterPins are sent with the statements of a migration. With them, an answer means that every
// server executed the statement.
var clusterPins = clickhouse.Settings{"distributed_ddl_output_mode": "throw"}

// plainName matches names that need no quotes in the statements for a cluster.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// measure asks a server how many shards the cluster has.
func (l *layout) measure(ctx context.Context, conn driver.Conn, server string) error {
	if l.Name == "" {
		return nil
	}
	if !schema.PlainName(l.Name) {
		return fmt.Errorf("cluster %q: want 1 to 64 of a-z, A-Z, 0-9, _ and -", l.Name)
	}
	if !plainName.MatchString(l.database) {
		return fmt.Errorf("database %q: on a cluster want letters, digits and _ only", l.database)
	}
	var shards, servers uint64
	err := conn.QueryRow(ctx, "SELECT uniqExact(shard_num), count() FROM system.clusters WHERE cluster = {cluster:String}",
		clickhouse.Named("cluster", l.Name)).Scan(&shards, &servers)
	switch {
	case err != nil:
		return fmt.Errorf("look for cluster %s: %w", l.Name, err)
	case shards == 0:
		return fmt.Errorf("cluster %s: server %s has no cluster of this name: correct --clickhouse-cluster, or define it in <remote_servers> of every server's configuration", l.Name, server)
	case l.WithoutKeeper && servers > shards:
		return fmt.Errorf("cluster %s: has %d servers in %d shards, but without Keeper servers cannot be replicas: define each server as a shard, or leave --clickhouse-without-keeper out", l.Name, servers, shards)
	}
	l.shards = int(shards) // a count of servers
	return nil
}

// refuseEverywhere checks all servers that the statements will be sent to. It needs the privilege
// REMOTE, which no service has.
func (l layout) refuseEverywhere(ctx context.Context, dsn string) error {
	if l.Name == "" || l.WithoutKeeper {
		return nil
	}
	options, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	return errors.Join(l.refuseOthers(ctx, conn, "clusterAllReplicas('"+l.Name+"', system.tables)"), conn.Close())
}

// refuseOthers returns an error for a table that differs from what a migration would create. A
// table that holds the rows of a single server would be replaced by one that holds none. A table
// that was created for another number of shards has its rows on other shards.
func (l layout) refuseOthers(ctx context.Context, conn driver.Conn, from string) error {
	rows, err := conn.Query(ctx, "SELECT hostName(), name, engine_full FROM "+from+
		" WHERE database = {database:String} AND name IN {tables:Array(String)}",
		clickhouse.Named("database", l.database), clickhouse.Named("tables", Tables))
	if err != nil {
		return fmt.Errorf("read the definitions of the tables: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var host, table, engine string
		if err := rows.Scan(&host, &table, &engine); err != nil {
			return fmt.Errorf("read the definitions of the tables: %w", err)
		}
		if err := l.refuse(table, engine); err != nil {
			return fmt.Errorf("table %s on %s: %w", table, host, err)
		}
	}
	return rows.Err()
}

func (l layout) refuse(table, engine string) error {
	distributed := strings.HasPrefix(engine, "Distributed(")
	switch {
	case l.Name == "" && distributed:
		return fmt.Errorf("it is distributed over a cluster, as %s: name the cluster with --clickhouse-cluster", engine)
	case l.Name != "" && !distributed:
		return errors.New("it holds the rows of a single server: leave --clickhouse-cluster out, or use another database and copy the rows (docs/SCALING.md)")
	case distributed && engine != l.distributed(table):
		return fmt.Errorf("it is %s, but the cluster needs %s: copies of stored rows would go to other shards (docs/SCALING.md)",
			engine, l.distributed(table))
	}
	return nil
}
