package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

type checkCommand struct {
	machineFlags `embed:""`
	Deep         bool     `help:"Compare what is kept, too: stream, rows, receipts, bundles, ledger and transparency log."`
	Bundles      string   `type:"path" placeholder:"DIR" help:"Directory of the bundles; default: that of the running up, or bundles/ in the data directory."`
	Key          []string `sep:"none" placeholder:"HEX|FILE" help:"Public key that bundles must be signed with, or that leads to the one that signed; repeatable. Default: that of the running up."`
	TSACert      string   `name:"tsa-cert" type:"path" placeholder:"FILE" help:"Certificates (PEM) of the time stamping authority, by which the stamps beside bundles are checked. Default: those of the running up."`
	Limit        int      `default:"100" help:"Most differences that are printed; 0 for all. All are counted."`
	Record       bool     `default:"true" negatable:"" help:"Write the outcome of --deep into the operator's ledger."`
	Tenant       string   `default:"default" help:"Whose streams and rows."`
	JSON         bool     `help:"Print one JSON object a finding, then a summary."`

	NATS          config.NATS `embed:"" prefix:"nats-" group:"A broker of your own instead of that of a running up"`
	ClickHouseDSN string      `name:"clickhouse-dsn" placeholder:"DSN" help:"This database instead of that of a running up."`
	Cluster       string      `name:"clickhouse-cluster" placeholder:"NAME" help:"The ClickHouse cluster that its tables are spread over: every server is checked."`
}

// Run checks the settings of broker and database, and with --deep also their contents.
func (c *checkCommand) Run(ctx context.Context, con *console) error {
	site, err := c.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.run(ctx, con, site), site.Client.Close(), site.Store.Close())
}

func (c *checkCommand) run(ctx context.Context, con *console, site *reconcile.Site) error {
	r := newCheckReport(con.out, c.JSON, c.Limit)
	if err := c.checkSettings(ctx, site, r); err != nil {
		return err
	}
	if c.Deep {
		var err error
		if r.summary.Deep, err = reconcile.Run(ctx, *site, r.difference); err != nil {
			return err
		}
	}
	if err := r.conclude(); err != nil {
		return err
	}
	if c.Deep && c.Record {
		if err := record(ctx, site.Client, r); err != nil { // a reader may check, but not write
			fmt.Fprintf(con.errs, "plumbline: the outcome is not in the ledger: %v\n", err)
		}
	}
	if r.faults() > 0 {
		return errFoundBad
	}
	return nil
}

// open opens what is to be checked. The caller closes client and store.
func (c *checkCommand) open(ctx context.Context) (*reconcile.Site, error) {
	if c.Cluster != "" && !schema.PlainName(c.Cluster) {
		return nil, clusterName(c.Cluster)
	}
	at, err := c.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	site := &reconcile.Site{Bundles: at.Bundles, Ledger: filepath.Join(at.DataDir, "ledger"), Log: filepath.Join(at.DataDir, "log"),
		KeyList: filepath.Join(at.DataDir, "keys", keystore.ListName), Stamps: filepath.Join(at.DataDir, "timestamps")}
	if err := c.pinned(at, site); err != nil {
		return nil, err
	}
	if site.Authorities, err = authorities(cmp.Or(c.TSACert, at.TSACertFile)); err != nil {
		return nil, err
	}
	common := config.Common{Tenant: c.Tenant, NATS: c.NATS}
	common.NATS.URL, common.NATS.MonitorURL = at.NATSURL, at.NATSMonitorURL
	if site.Client, err = stream.Connect(ctx, service.StreamConfig(&common, "plumbline check", nil)); err != nil {
		return nil, err
	}
	site.Store, err = store.Open(ctx, store.Config{DSN: at.ClickHouseDSN, Tenant: c.Tenant, Stage: "check", QueryTimeout: checkTimeout, Cluster: c.Cluster})
	if err != nil {
		return nil, errors.Join(usageError{err}, site.Client.Close())
	}
	return site, nil
}

// endpoints returns the endpoints of a running up, overridden by the command line. If the
// command line names both a broker and a database, no up needs to run.
func (c *checkCommand) endpoints(ctx context.Context) (at *machine.Endpoints, err error) {
	at = &machine.Endpoints{DataDir: c.Data, Bundles: filepath.Join(c.Data, "bundles")}
	if c.NATS.URL == "" || c.ClickHouseDSN == "" {
		if at, err = c.find(ctx); err != nil {
			return nil, fmt.Errorf("%w; or name broker and database with --nats-url and --clickhouse-dsn", err)
		}
		at.ClickHouseDSN = cmp.Or(at.OperatorDSN, at.ClickHouseDSN) // the operator may also read the bytes of dead letters
	}
	if c.NATS.URL != "" {
		at.NATSURL, at.NATSMonitorURL = c.NATS.URL, c.NATS.MonitorURL
	}
	if c.ClickHouseDSN != "" {
		at.ClickHouseDSN = c.ClickHouseDSN
	}
	if c.Bundles != "" {
		at.Bundles = c.Bundles
	}
	return at, nil
}

// pinned sets the pinned keys: those of --key, or else the key of the running up. Keys of the
// data directory's key list count only if a pinned key leads to them.
func (c *checkCommand) pinned(at *machine.Endpoints, site *reconcile.Site) (err error) {
	if site.Pinned, err = readKeys(c.Key); err != nil {
		return err
	}
	if len(c.Key) == 0 && at.PublicKey != "" {
		key, err := aivs.ParseKey(at.PublicKey)
		if err != nil {
			return fmt.Errorf("the key of the running plumbline: %w", err)
		}
		site.Pinned = []ed25519.PublicKey{key}
	}
	return nil
}
