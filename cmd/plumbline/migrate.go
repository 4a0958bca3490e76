package main

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/store"
)

type migrateCommand struct {
	ClickHouseDSN string `name:"clickhouse-dsn" required:"" placeholder:"DSN" help:"The database, as a user who may create tables: clickhouse://admin:password@host:9000/plumbline."`
}

// Run migrates and returns; it may run twice at once.
func (c *migrateCommand) Run(ctx context.Context, con *console) error {
	if err := store.Migrate(ctx, c.ClickHouseDSN); err != nil {
		return err
	}
	states, err := store.MigrationStatus(ctx, c.ClickHouseDSN)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "the database is at migration %d\n", states[len(states)-1].Version)
	return err
}
