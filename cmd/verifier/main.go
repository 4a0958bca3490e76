// Command verifier judges traces against their agents' Alignment Cards and
// stores both trace and verdict (package pipeline/verifier).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

func main() {
	cfg := verifier.Default()
	cmd := config.Command{
		Name:    "verifier",
		Summary: "Judge traces against their agents' Alignment Cards and store both.",
		Version: service.BuildVersion(),
		Examples: []string{
			"verifier --nats-url nats://nats.example:4222 --clickhouse-dsn clickhouse://service:password@db.example:9000/plumbline",
			"verifier --config plumbline.yaml --print-config",
		},
	}
	os.Exit(service.Main(cmd, &cfg, func(ctx context.Context, env *service.Env) error {
		return verifier.Serve(ctx, &cfg, env)
	}))
}
