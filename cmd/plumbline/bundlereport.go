package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/report"
	"github.com/plumbline/plumbline/pipeline/durable"
)

type bundleReportCommand struct {
	File string `arg:"" help:"The bundle (.tar.gz)."`
	Out  string `short:"o" placeholder:"FILE" help:"File to write. Default: standard output. Nothing is overwritten."`
	Full int    `help:"Maximum number of decisions to show in full; 0: all. The others are counted."`
	trustFlags
}

// Help returns the examples.
func (*bundleReportCommand) Help() string {
	return examples("plumbline bundle report aivs_proof_s-1.tar.gz -o report.html --key operator.pub")
}

// Run verifies the bundle and writes a page about it. The page says what is wrong if the bundle is
// not intact.
func (c *bundleReportCommand) Run(ctx context.Context, con *console) error {
	if c.Full < 0 {
		return usagef("--full is negative: want 0 or more")
	}
	if c.Out != "" {
		if err := mustBeNew(c.Out); err != nil {
			return err
		}
	}
	trusted, err := c.trust()
	if err != nil {
		return err
	}
	page, verified, err := pageOf(ctx, c.File, c.Full, trusted)
	if err != nil {
		return err
	}
	if c.Out == "" {
		if _, err := con.out.Write(page); err != nil {
			return err
		}
	} else if err := durable.WriteFile(c.Out, page, 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if !verified.Intact {
		fmt.Fprintf(con.errs, "plumbline: this bundle is not intact; to see why, read the report, or run: plumbline bundle verify %s\n", c.File)
	}
	return found(nil, verified.Intact)
}

// pageOf verifies a bundle and returns a page about it.
func pageOf(ctx context.Context, path string, full int, t *trusted) ([]byte, *aivs.Report, error) {
	var contents report.Contents
	options := t.options
	options.Row, options.File = contents.Row, contents.File
	verified, err := judgeFile(ctx, path, options, t.anchors, true)
	if err != nil {
		return nil, nil, err
	}
	page := report.Page{File: filepath.Base(path), Report: verified, Contents: &contents, Full: full}
	var text bytes.Buffer
	err = page.Write(&text)
	return text.Bytes(), verified, err
}
