// Command drift detects agents whose behavior diverges from their baseline for a sustained
// time (package pipeline/drift).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/run"
)

func main() {
	cfg := drift.Default()
	cmd := run.Command{
		Name:    "drift",
		Summary: "Watch agents for sustained divergence from their own beginnings.",
		Version: run.BuildVersion(),
	}
	os.Exit(run.Main(cmd, &cfg, func(ctx context.Context, env *run.Env) error {
		return drift.Serve(ctx, &cfg, env)
	}))
}
