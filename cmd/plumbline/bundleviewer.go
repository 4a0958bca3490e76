package main

import (
	"fmt"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/viewer"
)

type bundleViewerCommand struct{}

// Help returns the examples.
func (*bundleViewerCommand) Help() string {
	return examples("plumbline bundle viewer > viewer.html")
}

// Run prints the page.
func (*bundleViewerCommand) Run(con *console) error {
	page, _, err := viewer.Page(aivs.Verifiers())
	if err != nil {
		return err
	}
	if _, err := con.out.Write(page); err != nil {
		return fmt.Errorf("print the page: %w", err)
	}
	return nil
}
