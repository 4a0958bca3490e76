// Command ingest accepts traces, Alignment Cards and the ends of sessions over
// HTTP and makes them durable on the broker (package pipeline/ingest). With a
// database it answers readers, too (package pipeline/reading).
package main

import (
	"context"
	"errors"
	"os"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/reading"
	"github.com/plumbline/plumbline/pipeline/service"
)

// settings configure the service.
type settings struct {
	ingest.Config `embed:""`
	Reading       reading.Config `embed:""`
}

// Validate returns every fault.
func (s *settings) Validate() []config.Fault {
	return append(s.Config.Validate(), s.Reading.Validate()...)
}

// FileFaults returns the faults of the files that the settings name.
func (s *settings) FileFaults() []config.Fault {
	return append(s.Config.FileFaults(), s.Reading.FileFaults()...)
}

func main() {
	cfg := settings{Config: ingest.Default(), Reading: reading.Default()}
	cmd := config.Command{
		Name:    "ingest",
		Summary: "Take traces, Alignment Cards and the ends of sessions over HTTP.",
		Version: service.BuildVersion(),
		Examples: []string{
			"ingest --nats-url nats://nats.example:4222 --nats-credentials-file ingest.creds --listen 0.0.0.0:8080 --token-file tokens.jsonl",
			"ingest --config plumbline.yaml --print-config",
		},
	}
	os.Exit(service.Main(cmd, &cfg, func(ctx context.Context, env *service.Env) (err error) {
		reader, err := reading.Open(ctx, cfg.Reading, cfg.Tenant, env.Log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, reader.Close()) }()
		return ingest.Serve(ctx, &cfg.Config, env, reader)
	}))
}
