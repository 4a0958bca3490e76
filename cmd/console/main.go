// Command console serves the pages for people: what a fleet does, who drifts, what is wrong
// (package web). It reads the database, and needs no other service to run.
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/web"
)

func main() {
	cfg := web.Default()
	cmd := config.Command{
		Name:    "console",
		Summary: "Serve the pages that show a fleet to people.",
		Version: service.BuildVersion(),
		Examples: []string{
			"console --clickhouse-dsn clickhouse://reader@db.example:9000/plumbline --listen 0.0.0.0:8081 --token-file tokens.jsonl --tls-cert-file console.pem --tls-key-file console.key",
			"console --config plumbline.yaml --print-config",
		},
	}
	os.Exit(service.Main(cmd, &cfg, func(ctx context.Context, env *service.Env) error { return web.Serve(ctx, &cfg, env) }))
}
