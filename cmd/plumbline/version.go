package main

import (
	"fmt"
	"runtime"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/service"
)

type versionCommand struct {
	JSON bool `help:"Print one JSON object."`
}

// Run prints the versions of the tool and of the judging engine.
func (c *versionCommand) Run(con *console) error {
	if c.JSON {
		return writeJSON(con.out, map[string]string{"version": service.BuildVersion(), "engine": aap.EngineVersion, "go": runtime.Version()})
	}
	_, err := fmt.Fprintf(con.out, "plumbline %s, judging by %s, %s\n", service.BuildVersion(), aap.EngineVersion, runtime.Version())
	return err
}
