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

// Cluster says over which servers the tables are spread (docs/adr/0016). The zero value
// is one server.
type Cluster struct {
	Name          string // as the servers' <remote_servers> names it
	WithoutKeeper bool   // a shard is one server, and migrating is about the server of the DSN alone
}

// layout is a cluster as the tables of a database are spread over it. Of each table T,
// T_local holds the rows of one shard, and T is a Distributed table over all of them:
// statements and views that name T need not know of shards.
type layout struct {
	Cluster
	database string
	shards   int
}

const localSuffix = "_local"

// shardedBy are the columns that choose a row's shard, beside the tenant, where that is
// not the agent. Each is part of its table's sort key: the copies of a row meet on one
// shard, and FINAL collapses them there.
var shardedBy = map[string]string{
	"coherence_results": "initiator_agent_id",
	"task_results":      "initiator_agent_id",
	"dead_letters":      "digest",
	"dead_letter_marks": "digest",
	"bundle_copies":     "sha256",
	"ledger":            "ledger",
}

// distributed is the engine of the table over all shards, as the server repeats it. The
// number of shards is part of it: a shard that is added to the cluster must not change
// where copies of stored rows go.
func (l layout) distributed(table string) string {
	return fmt.Sprintf("Distributed('%s', '%s', '%s', sipHash64(tenant, %s) %% %d)",
		l.Name, l.database, table+localSuffix, cmp.Or(shardedBy[table], "agent_id"), l.shards)
}

// replicated is the engine of a shard's part of a table: one path in Keeper for the
// replicas of the shard, which the macros of the servers name.
func (l layout) replicated(table, version string) string {
	arguments := []string{fmt.Sprintf("'/clickhouse/tables/{shard}/%s/%s'", l.database, table+localSuffix), "'{replica}'"}
	if version != "" {
		arguments = append(arguments, version)
	}
	return "ReplicatedReplacingMergeTree(" + strings.Join(arguments, ", ") + ")"
}

// onCluster sends a statement to every server.
func (l layout) onCluster() string {
	if l.WithoutKeeper {
		return ""
	}
	return " ON CLUSTER '" + l.Name + "'"
}

// What a migration's statement begins with, and the engine of a table.
var (
	statementHead = regexp.MustCompile(`(?m)^(CREATE TABLE IF NOT EXISTS|CREATE OR REPLACE VIEW|ALTER TABLE) (\w+)( AS| MODIFY SETTING .+)?$`)
	tableEngine   = regexp.MustCompile(`(?m)^ENGINE = ReplacingMergeTree(?:\((\w+)\))?$`)
)

// durableHead begins the settings of a table. A replica that fetches a part from another
// does not sync it by them: merged elsewhere, it may replace parts that were synced.
const (
	durableHead  = "\nSETTINGS fsync_after_insert = 1"
	fetchSetting = "min_compressed_bytes_to_fsync_after_fetch = 1"
)

// statementsOf returns the statements of a migration, as goose takes them apart.
func statementsOf(migration string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(migration), ";"), ";\n")
}

// statements makes of the statements of a migration those for the cluster.
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

// statement makes of a statement for one server those for the cluster. A view stays as it
// is. A table becomes the shard's part; then the table over all shards, which holds no
// row, is made again with the same columns. A setting is one of the part alone.
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

// steps are the migrations for the cluster. The first makes the database on every server.
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

// clusterPins are sent with the statements of a migration: an answer means that every
// server did it.
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
