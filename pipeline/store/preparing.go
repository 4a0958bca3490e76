package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/plumbline/plumbline/schema"
)

// prepare connects without a database, creates the database if it is missing, and reads what the
// migrations depend on.
func (c Cluster) prepare(ctx context.Context, dsn string) (layout, error) {
	options, err := parseDSN(dsn)
	if err != nil {
		return layout{}, err
	}
	l := layout{Cluster: c, database: options.Auth.Database}
	if l.database == "" {
		return l, errors.New("clickhouse.dsn: names no database")
	}
	options.Auth.Database = ""
	conn, err := clickhouse.Open(options)
	if err != nil {
		return l, err
	}
	if err = l.measure(ctx, conn, strings.Join(options.Addr, ",")); err == nil {
		if err = createDatabase(ctx, conn, l.database); err == nil {
			err = l.refuseOthers(ctx, conn, "system.tables")
		}
	}
	return l, errors.Join(err, conn.Close())
}

// createDatabase creates the database unless it exists. A user who may only read and insert
// cannot migrate, but can still learn that there is nothing to migrate.
func createDatabase(ctx context.Context, conn driver.Conn, name string) error {
	var there uint64
	err := conn.QueryRow(ctx, "SELECT count() FROM system.databases WHERE name = {name:String}", clickhouse.Named("name", name)).Scan(&there)
	if err == nil && there == 0 {
		err = conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS {name:Identifier}", clickhouse.Named("name", name))
	}
	if err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}

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
		return fmt.Errorf("cluster %s: server %s knows no cluster of this name: correct --clickhouse-cluster, or define it in <remote_servers> of every server's configuration", l.Name, server)
	case l.WithoutKeeper && servers > shards:
		return fmt.Errorf("cluster %s: %d servers are %d shards, and without Keeper no server has a copy of another: define each server as a shard, or leave --clickhouse-without-keeper out", l.Name, servers, shards)
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
		clickhouse.Named("database", l.database), clickhouse.Named("tables", tables))
	if err != nil {
		return fmt.Errorf("look at the tables: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var host, table, engine string
		if err := rows.Scan(&host, &table, &engine); err != nil {
			return fmt.Errorf("look at the tables: %w", err)
		}
		if err := l.refuse(table, engine); err != nil {
			return fmt.Errorf("table %s on %s: %w", table, host, err)
		}
	}
	return rows.Err()
}

func (l layout) refuse(table, engine string) error {
	spread := strings.HasPrefix(engine, "Distributed(")
	switch {
	case l.Name == "" && spread:
		return fmt.Errorf("it is spread over a cluster, as %s: name the cluster with --clickhouse-cluster", engine)
	case l.Name != "" && !spread:
		return errors.New("it holds the rows of a single server: leave --clickhouse-cluster out, or take another database and copy the rows (docs/SCALING.md)")
	case spread && engine != l.distributed(table):
		return fmt.Errorf("it is %s, and would be %s: rows that are stored would not lie where copies of them go (docs/SCALING.md)",
			engine, l.distributed(table))
	}
	return nil
}
