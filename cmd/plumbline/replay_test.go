package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// On external servers, replay writes what is missing. After an interruption the command says
// how to continue.
func TestReplayOnExternalServers(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	for i := range 6 {
		rig.Publish(t, pipelinetest.Trace(fmt.Sprintf("tr-%d", i), "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
	}
	cfg := verifier.Default()
	cfg.Common, cfg.ClickHouse = rig.Common(), rig.ClickHouse()
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &cfg, pipelinetest.Env(t, "verifier")) })
	pipelinetest.Await(t, "the traces acknowledged", func() bool {
		progress, err := rig.Client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.AckFloor == 6
	})
	stage.Stop(t)
	rig.Exec(t, "ALTER TABLE traces DELETE WHERE trace_id > 'tr-1'")

	command := replayCommand{
		machineFlags: machineFlags{Data: t.TempDir()}, Tenant: "default",
		NATS: config.NATS{URL: rig.Broker.URL()}, ClickHouseDSN: rig.DSN, Verifier: verifier.DefaultRules(), Rules: drift.DefaultRules(),
	}
	for _, want := range []string{
		"Judged again: 6 messages. 2 were complete, 0 are dead letters, 0 were removed by retention.\nWas missing and has been added: 4 rows.\n",
		"Judged again: 6 messages. 6 were complete, 0 are dead letters, 0 were removed by retention.\nNothing was missing.\n",
	} {
		var out bytes.Buffer
		if err := command.Run(t.Context(), &console{out: &out, errs: os.Stderr}); err != nil || out.String() != want {
			t.Errorf("output\n%swant\n%serror %v", &out, want, err)
		}
	}
	rig.Exec(t, "RENAME TABLE verdicts TO verdicts_elsewhere")
	command.FromSequence = 3
	err := command.Run(t.Context(), &console{out: io.Discard, errs: os.Stderr})
	if err == nil || exitCode(err) != exitBad || !strings.Contains(err.Error(), "\nContinue with: plumbline replay --from-sequence 3 ") {
		t.Errorf("interrupted: error %v", err)
	}
}
