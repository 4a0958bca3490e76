// Command webhooks sends alerts to HTTP endpoints (package pipeline/webhook).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/webhook"
)

func main() {
	cfg := webhook.Default()
	cmd := config.Command{
		Name:    "webhooks",
		Summary: "Send alerts to HTTP endpoints, signed.",
		Version: service.BuildVersion(),
		Examples: []string{
			"webhooks --webhooks-file /etc/plumbline/webhooks.yaml --nats-url nats://nats.example:4222",
			"webhooks --config plumbline.yaml --webhooks-file /etc/plumbline/webhooks.yaml --print-config",
		},
	}
	os.Exit(service.Main(cmd, &cfg, func(ctx context.Context, env *service.Env) error { return webhook.Serve(ctx, &cfg, env) }))
}
