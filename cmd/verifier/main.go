// Command verifier judges traces against their agents' Alignment Cards and
// stores both trace and verdict (package pipeline/verifier).
package main

import (
	"context"
	"os"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

func main() {
	cfg := verifier.Default()
	cmd := run.Command{
		Name:    "verifier",
		Summary: "Judge traces against their agents' Alignment Cards and store both.",
		Version: run.BuildVersion(),
	}
	os.Exit(run.Main(cmd, &cfg, func(ctx context.Context, env *run.Env) error {
		return verifier.Serve(ctx, &cfg, env)
	}))
}
