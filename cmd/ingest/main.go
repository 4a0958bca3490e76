// Command ingest accepts traces, Alignment Cards and the ends of sessions over
// HTTP and makes them durable on the broker (package pipeline/ingest).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/service"
)

func main() {
	cfg := ingest.Default()
	cmd := config.Command{
		Name:    "ingest",
		Summary: "Take traces, Alignment Cards and the ends of sessions over HTTP.",
		Version: service.BuildVersion(),
	}
	os.Exit(service.Main(cmd, &cfg, func(ctx context.Context, env *service.Env) error {
		return ingest.Serve(ctx, &cfg, env)
	}))
}
