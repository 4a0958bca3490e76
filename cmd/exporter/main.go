// Command exporter seals sessions into signed AIVS bundles (package
// pipeline/exporter).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/service"
)

func main() {
	cfg := exporter.Default()
	cmd := config.Command{
		Name:    "exporter",
		Summary: "Seal sessions into signed AIVS bundles.",
		Version: service.BuildVersion(),
		Examples: []string{
			"exporter --data /var/lib/plumbline --seal-idle 1h --seal-schedule '0 3 * * *'",
			"exporter --config plumbline.yaml --print-config",
		},
	}
	os.Exit(service.Main(cmd, &cfg, func(ctx context.Context, env *service.Env) error {
		return exporter.Serve(ctx, &cfg, env)
	}))
}
