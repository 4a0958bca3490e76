// Command ingest accepts traces, Alignment Cards and the ends of sessions over
// HTTP and makes them durable on the broker (package pipeline/ingest).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/run"
)

func main() {
	cfg := ingest.Default()
	cmd := run.Command{
		Name:    "ingest",
		Summary: "Take traces, Alignment Cards and the ends of sessions over HTTP.",
		Version: run.BuildVersion(),
	}
	os.Exit(run.Main(cmd, &cfg, func(ctx context.Context, env *run.Env) error {
		return ingest.Serve(ctx, &cfg, env)
	}))
}
