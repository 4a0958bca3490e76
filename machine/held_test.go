package machine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A second machine on one broker is refused. So are a machine next to an exporter, and an
// exporter next to a machine, in another directory. Each error names the running process. The refused machine
// has created nothing but the lock of its directory; in particular it has no verifier that
// would store traces in a database of its own.
func TestSecondMachineIsRefused(t *testing.T) {
	rig := pipelinetest.New(t)
	on := func(dir string) machine.Config {
		return machine.Config{
			DataDir: dir, Listen: "127.0.0.1:0",
			NATS:       config.NATS{URL: rig.Broker.URL(), MonitorURL: rig.Broker.MonitorURL()},
			ClickHouse: rig.ClickHouse(),
		}
	}
	refused := func() {
		t.Helper()
		dir, before := t.TempDir(), ledgerEvents(t, rig)
		_, err := machine.Start(t.Context(), on(dir))
		if !errors.Is(err, stream.ErrLeaseHeld) || !strings.Contains(err.Error(), fmt.Sprintf("exporter: %v: process %d on host ", stream.ErrLeaseHeld, os.Getpid())) {
			t.Errorf("the machine: error %v", err)
		}
		if left := names(t, dir); !slices.Equal(left, []string{"lock"}) || ledgerEvents(t, rig) != before {
			t.Errorf("the failed start left %q and %d events in the ledger", left, ledgerEvents(t, rig)-before)
		}
	}
	cfg := exporter.Default()
	cfg.Common, cfg.ClickHouse, cfg.DataDir = rig.Common(), rig.ClickHouse(), t.TempDir()
	env := pipelinetest.Env(t, "exporter")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return exporter.Serve(ctx, &cfg, env) })
	pipelinetest.Await(t, "the exporter", func() bool { return env.Health.Reported().Ready })
	refused()
	stage.Stop(t)

	m := start(t, on(t.TempDir()))
	defer stop(t, m)
	refused()
	if err := exporter.Serve(t.Context(), &cfg, pipelinetest.Env(t, "exporter")); !errors.Is(err, ownership.ErrElsewhere) {
		t.Errorf("an exporter: error %v", err)
	}
}

// ledgerEvents returns the number of events in the operator's ledger.
func ledgerEvents(t *testing.T, rig *pipelinetest.Rig) uint64 {
	t.Helper()
	state, err := rig.Client.StreamState(t.Context(), stream.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	return state.Messages
}

// names lists a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

// A machine on a directory without a key does not create one if the tenant's bundles were
// signed before.
func TestMachineMakesNoSecondKey(t *testing.T) {
	rig := pipelinetest.New(t)
	seals, err := rig.Client.Bucket(t.Context(), stream.Seals)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seals.Put(t.Context(), seal.SignerKey, []byte("0123456789abcdef")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = machine.Start(t.Context(), machine.Config{
		DataDir: dir, Listen: "127.0.0.1:0", ClickHouse: rig.ClickHouse(),
		NATS: config.NATS{URL: rig.Broker.URL(), MonitorURL: rig.Broker.MonitorURL()},
	})
	if err == nil || !strings.Contains(err.Error(), "were signed with key 0123456789abcdef") {
		t.Errorf("start: error %v", err)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"lock"}) {
		t.Errorf("the failed start left %q", left)
	}
}
