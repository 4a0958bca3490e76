// Command drift detects agents whose behavior diverges from their baseline for a sustained
// time (package pipeline/drift).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/service"
)

func main() {
	cfg := drift.Default()
	cmd := config.Command{
		Name:    "drift",
		Summary: "Detect agents whose behavior diverges from their baseline for a sustained time.",
		Version: service.BuildVersion(),
		Examples: []string{
			"drift --nats-url nats://nats.example:4222 --clickhouse-dsn clickhouse://service:password@db.example:9000/plumbline --mode rolling",
			"drift --config plumbline.yaml --print-config",
		},
	}
	os.Exit(service.Main(cmd, &cfg, func(ctx context.Context, env *service.Env) error {
		return drift.Serve(ctx, &cfg, env)
	}))
}
