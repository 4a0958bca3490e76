package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/store"
)

// machineFlags identify a running up.
type machineFlags struct {
	Data string `default:"./plumbline-data" placeholder:"DIR" help:"Data directory of the running plumbline up (${default})."`
}

func (f *machineFlags) find(ctx context.Context) (*machine.Endpoints, error) {
	return machine.Find(ctx, f.Data)
}

// ingestFlags identify an ingest.
type ingestFlags struct {
	machineFlags `embed:""`
	URL          string `name:"url" placeholder:"URL" help:"Ingest's address instead of that of a running up."`
	Token        string `placeholder:"TOKEN" help:"Bearer token, where ingest asks for one."`
}

func (f *ingestFlags) client(ctx context.Context) (*publisher.Client, error) {
	if f.URL != "" {
		return &publisher.Client{URL: f.URL, Token: f.Token}, nil
	}
	at, err := f.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; or name the address of an ingest with --url", err)
	}
	return &publisher.Client{URL: at.IngestURL, Token: f.Token}, nil
}

// readerFlags identify a database to read.
type readerFlags struct {
	machineFlags  `embed:""`
	ClickHouseDSN string `name:"clickhouse-dsn" placeholder:"DSN" help:"Read this database instead of that of a running up."`
	Tenant        string `default:"default" help:"Whose rows."`
}

// open returns the store; the caller closes it.
func (f *readerFlags) open(ctx context.Context) (*store.Store, error) {
	return f.openAs(ctx, func(at *machine.Endpoints) string { return at.ClickHouseDSN })
}

// openAs opens the store with one of the credentials of a running up.
func (f *readerFlags) openAs(ctx context.Context, credential func(*machine.Endpoints) string) (*store.Store, error) {
	dsn := f.ClickHouseDSN
	if dsn == "" {
		at, err := f.find(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w; or name a database with --clickhouse-dsn", err)
		}
		dsn = credential(at)
	}
	s, err := store.Open(ctx, store.Config{DSN: dsn, Tenant: f.Tenant})
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

// read opens the store, calls do and closes the store.
func (f *readerFlags) read(ctx context.Context, do func(*store.Store) error) error {
	s, err := f.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// readLetters is read with a credential that may read the bytes of dead letters.
func (f *readerFlags) readLetters(ctx context.Context, do func(*store.Store) error) error {
	s, err := f.openAs(ctx, func(at *machine.Endpoints) string { return at.OperatorDSN })
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}
