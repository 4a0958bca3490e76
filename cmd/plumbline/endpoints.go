package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/store"
)

// machineFlags identify a running up.
type machineFlags struct {
	Data string `aliases:"dir" placeholder:"DIR" help:"Data directory of the running plumbline up. Default: ./plumbline-data if one runs there, otherwise that of the only one that this user runs."`
}

// defaultData is the data directory of up if none is given.
const defaultData = "./plumbline-data"

// find returns the endpoints of the running up that the flags name.
func (f *machineFlags) find(ctx context.Context) (*machine.Endpoints, error) {
	if f.Data != "" {
		return machine.Find(ctx, f.Data)
	}
	at, err := machine.Find(ctx, defaultData)
	if !errors.Is(err, machine.ErrNotRunning) {
		return at, err
	}
	state, noState := machine.StateDir()
	if noState != nil {
		return nil, err
	}
	other, anyErr := machine.FindAny(ctx, state)
	if errors.Is(anyErr, machine.ErrNotRunning) {
		return nil, err
	}
	return other, anyErr
}

// dataDir returns the data directory of the running up, or the one that up would take.
func (f *machineFlags) dataDir(ctx context.Context) string {
	if at, err := f.find(ctx); err == nil {
		return at.DataDir
	}
	return cmp.Or(f.Data, defaultData)
}

// servers returns the endpoints of the running up, for a command that needs a broker and a
// database. If flags name both, no up needs to run, and the endpoints are empty.
func (f *machineFlags) servers(ctx context.Context, natsURL, dsn string) (*machine.Endpoints, error) {
	if natsURL != "" && dsn != "" {
		return new(machine.Endpoints), nil
	}
	at, err := f.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; or name broker and database with --nats-url and --clickhouse-dsn", err)
	}
	return at, nil
}

// ingestFlags identify an ingest.
type ingestFlags struct {
	machineFlags `embed:""`
	URL          string `name:"url" placeholder:"URL" help:"Address of ingest. Default: that of the running up."`
	Token        string `placeholder:"TOKEN" help:"Bearer token, if ingest requires one."`
}

// publisher returns the client of the ingest that the flags name.
func (f *ingestFlags) publisher(ctx context.Context) (*client.Publisher, error) {
	if f.URL != "" {
		return &client.Publisher{URL: f.URL, Token: f.Token}, nil
	}
	at, err := f.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; or name the address of an ingest with --url", err)
	}
	return &client.Publisher{URL: at.IngestURL, Token: f.Token}, nil
}

// readerFlags identify a database to read.
type readerFlags struct {
	machineFlags  `embed:""`
	ClickHouseDSN string `name:"clickhouse-dsn" placeholder:"DSN" help:"Database to read. Default: that of the running up."`
	Tenant        string `default:"default" help:"Tenant whose data is read."`
}

// read opens the store as a reader, calls do and closes the store.
func (f *readerFlags) read(ctx context.Context, do func(*store.Store) error) error {
	return f.readAs(ctx, func(at *machine.Endpoints) string { return at.ClickHouseDSN }, do)
}

// readLetters is read with a credential that may read the bytes of dead letters.
func (f *readerFlags) readLetters(ctx context.Context, do func(*store.Store) error) error {
	return f.readAs(ctx, func(at *machine.Endpoints) string { return at.OperatorDSN }, do)
}

func (f *readerFlags) readAs(ctx context.Context, credential func(*machine.Endpoints) string, do func(*store.Store) error) error {
	dsn := f.ClickHouseDSN
	if dsn == "" {
		at, err := f.find(ctx)
		if err != nil {
			return fmt.Errorf("%w; or name a database with --clickhouse-dsn", err)
		}
		dsn = credential(at)
	}
	s, err := store.Open(ctx, store.Config{DSN: dsn, Tenant: f.Tenant})
	if err != nil {
		return usageError{err}
	}
	return errors.Join(do(s), s.Close())
}
