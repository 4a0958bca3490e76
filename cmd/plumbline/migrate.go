package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

type migrateCommand struct {
	ClickHouseDSN string      `name:"clickhouse-dsn" required:"" placeholder:"DSN" help:"DSN of the database, with a user that may create tables: clickhouse://admin:password@host:9000/plumbline."`
	Cluster       string      `name:"clickhouse-cluster" placeholder:"NAME" help:"Distribute the tables over this ClickHouse cluster, by the name that its servers use (docs/SCALING.md)."`
	WithoutKeeper bool        `name:"clickhouse-without-keeper" help:"Migrate only the server of the DSN, with tables that are not replicated. For a cluster without Keeper; run it once for each server."`
	NATS          config.NATS `embed:"" prefix:"nats-" group:"The broker in which to create the streams, if the services may not create them (docs/NATS.md)"`
	Tenant        string      `default:"default" help:"Tenant whose streams are created."`
}

// Help returns the examples.
func (*migrateCommand) Help() string {
	return examples(
		"plumbline migrate --clickhouse-dsn clickhouse://admin:password@db.example:9000/plumbline",
		"plumbline migrate --clickhouse-dsn clickhouse://admin:password@db.example:9000/plumbline --nats-url nats://nats.example:4222 --nats-credentials-file admin.creds",
	)
}

// Run migrates and returns; two runs at the same time are safe.
func (c *migrateCommand) Run(ctx context.Context, con *console) error {
	switch {
	case c.WithoutKeeper && c.Cluster == "":
		return usagef("--clickhouse-without-keeper: name the cluster with --clickhouse-cluster")
	case c.Cluster != "" && !schema.PlainName(c.Cluster):
		return clusterName(c.Cluster)
	}
	over := database.Cluster{Name: c.Cluster, WithoutKeeper: c.WithoutKeeper}
	if err := over.Migrate(ctx, c.ClickHouseDSN); err != nil {
		return err
	}
	states, err := database.MigrationStatus(ctx, c.ClickHouseDSN)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(con.out, "the database is at migration %d\n", states[len(states)-1].Version); err != nil {
		return err
	}
	if c.NATS.URL == "" {
		return nil
	}
	common := config.Common{Tenant: c.Tenant, NATS: c.NATS}
	client, err := stream.Connect(ctx, service.StreamConfig(&common, "plumbline migrate", con.logger()))
	if err != nil {
		return err
	}
	if err := errors.Join(client.EnsureTopology(ctx), client.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(con.out, "the broker has every stream, bucket and consumer")
	return err
}

// clusterName returns the error for an invalid name of a cluster.
func clusterName(given string) error {
	return usagef("--clickhouse-cluster: %q: want 1 to 64 of a-z, A-Z, 0-9, _ and -", given)
}
