// Package tables opens the tables for a stage: it waits for the server, refuses settings below
// the durability requirement, and shows in readiness whether the server answers.
//
// It owns the order in which a stage opens its database. It does not own the tables, the
// definition of a weak setting (pipeline/database), or how a setting is read (pipeline/config). It is
// separate from both so the store links neither the broker nor the command line, and ingest,
// which uses pipeline/service too, links no ClickHouse.
//
// Invariant: a store that Open returns has every table, and settings that keep acknowledged data,
// unless the operator allowed others.
package tables

import (
	"context"
	"errors"
	"log/slog"
	"net/url"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
)

// Open opens the database that a stage's configuration names, and waits until it answers and has
// every table. A setting below the durability requirement is an error, a database.Weakness, that
// names it. With cfg.AllowUnsafe it is logged instead.
func Open(ctx context.Context, common *config.Common, cfg *config.ClickHouse, env *service.Env) (*store.Store, error) {
	if err := showCertificates(cfg.DSN, env); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, store.Config{DSN: cfg.DSN, Tenant: common.Tenant, Stage: env.Name, Cluster: cfg.Cluster})
	if err != nil {
		return nil, err
	}
	health := env.Component("database")
	err = env.Retry.Do(ctx, "reach the database", func() error {
		err := s.Ready(ctx)
		if err == nil {
			err = inspect(ctx, s, cfg.AllowUnsafe, env.Log)
		}
		health.Report(err)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	health.Ask(s.Ping)
	return s, nil
}

// showCertificates shows when the certificates expire that a DSN names.
func showCertificates(dsn string, env *service.Env) error {
	u, err := url.Parse(dsn)
	if err != nil {
		return errors.New("clickhouse_dsn: not an address") // the cause would repeat the password
	}
	return errors.Join(
		env.ShowCertificate("clickhouse_dsn ca_file", u.Query().Get("ca_file")),
		env.ShowCertificate("clickhouse_dsn cert_file", u.Query().Get("cert_file")))
}

// inspect refuses a database below the durability requirement, or logs what is wrong with it.
func inspect(ctx context.Context, s *store.Store, allowUnsafe bool, log *slog.Logger) error {
	found, err := s.Inspect(ctx)
	if err != nil {
		return err
	}
	for _, unknown := range found.Unknown {
		log.Warn("a server of the database could not be checked", "server", unknown)
	}
	faults := make([]error, len(found.Weaknesses))
	for i, weakness := range found.Weaknesses {
		faults[i] = weakness
	}
	if !allowUnsafe {
		return service.Permanent(errors.Join(faults...))
	}
	for _, weakness := range faults {
		log.Warn("ClickHouse setting is below the durability requirement", "weakness", weakness)
	}
	return nil
}
