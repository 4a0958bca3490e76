// Command exporter seals sessions into signed AIVS bundles (package
// pipeline/exporter).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/run"
)

func main() {
	cfg := exporter.Default()
	cmd := run.Command{
		Name:    "exporter",
		Summary: "Seal sessions into signed AIVS bundles.",
		Version: run.BuildVersion(),
	}
	os.Exit(run.Main(cmd, &cfg, func(ctx context.Context, env *run.Env) error {
		return exporter.Serve(ctx, &cfg, env)
	}))
}
