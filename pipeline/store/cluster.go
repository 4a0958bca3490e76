package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/pressly/goose/v3"
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

// statements translates the statements of a migration for the cluster.
func (l layout) statements(migration string) (all []string, err error) {
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
		return nil, fmt.Errorf("%d lines are the head of a statement for a cluster, want one", len(heads))
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
			return nil, fmt.Errorf("table %s: no line says ENGINE = ReplacingMergeTree", table)
		}
		text = strings.Replace(text, engine[0], "ENGINE = "+l.replicated(table, engine[1]), 1)
		if !strings.Contains(text, durableHead) {
			return nil, fmt.Errorf("table %s: no line begins with %s", table, durableHead)
		}
		text = strings.Replace(text, durableHead, "\nSETTINGS "+fetchSetting+", "+strings.TrimPrefix(durableHead, "\nSETTINGS "), 1)
	}
	over := fmt.Sprintf("CREATE OR REPLACE TABLE %s%s AS %s ENGINE = %s", table, l.onCluster(), table+localSuffix, l.distributed(table))
	return []string{text, over}, nil
}

// steps returns the migrations for the cluster. The first one creates the database on every
// server.
func (l layout) steps(files fs.FS) ([]*goose.Migration, error) {
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
		if i == 0 && !l.WithoutKeeper {
			statements = append([]string{"CREATE DATABASE IF NOT EXISTS " + l.database + l.onCluster()}, statements...)
		}
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		steps[i] = goose.NewGoMigration(version, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
			return execEach(ctx, db, statements)
		}}, nil)
	}
	return steps, nil
}

// clusterPins are sent with the statements of a migration. With them, an answer means that every
// server executed the statement.
var clusterPins = clickhouse.Settings{"distributed_ddl_output_mode": "throw"}

func execEach(ctx context.Context, db *sql.DB, statements []string) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clusterPins))
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
