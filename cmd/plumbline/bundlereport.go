package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs/report"
	"github.com/plumbline/plumbline/pipeline/durable"
)

type bundleReportCommand struct {
	File string `arg:"" help:"The bundle (.tar.gz)."`
	Out  string `short:"o" placeholder:"FILE" help:"File to write. Default: standard output."`
	Full int    `help:"Maximum number of decisions to show in full; 0: all. The others are counted."`
	trustFlags
}

// Run verifies the bundle and writes a page about it. The page says what is wrong if the bundle is
// not intact.
func (c *bundleReportCommand) Run(ctx context.Context, con *console) error {
	if c.Full < 0 {
		return usagef("--full is negative: want 0 or more")
	}
	trusted, err := c.trust()
	if err != nil {
		return err
	}
	var contents report.Contents
	trusted.options.Row, trusted.options.File = contents.Row, contents.File
	verified, err := judgeFile(ctx, c.File, trusted.options, trusted.anchors, true)
	if err != nil {
		return err
	}
	page := report.Page{File: filepath.Base(c.File), Report: verified, Contents: &contents, Full: c.Full}
	var text bytes.Buffer
	if err := page.Write(&text); err != nil {
		return err
	}
	if c.Out == "" {
		if _, err := con.out.Write(text.Bytes()); err != nil {
			return err
		}
	} else if err := durable.WriteFile(c.Out, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if !verified.Intact {
		fmt.Fprintf(con.errs, "plumbline: this bundle is not intact; to see why, read the report, or run: plumbline bundle verify %s\n", c.File)
	}
	return found(nil, verified.Intact)
}
