package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
)

type bundleCommands struct {
	Verify bundleVerifyCommand `cmd:"" help:"Verify bundles, trusting nothing inside them."`
	Seal   bundleSealCommand   `cmd:"" help:"Seal recorded rows into a bundle, without any service."`
	Show   bundleShowCommand   `cmd:"" help:"Show a bundle's manifest and rows."`
}

type bundleVerifyCommand struct {
	Paths            []string `arg:"" name:"path" help:"Bundles (.tar.gz), or directories that are searched for them."`
	Key              []string `sep:"none" placeholder:"HEX|FILE" help:"Public key that must have signed, as hexadecimal digits or a file; one of them where it is repeated."`
	Keyring          string   `type:"path" placeholder:"FILE" help:"Key list (keys.jsonl): any session key that one of --key leads to may have signed, within its time."`
	RequireSignature bool     `help:"An unsigned bundle is bad; --key implies it."`
	JSON             bool     `help:"Print one JSON object a bundle."`

	anchorFlags
}

// verified is a report with the bundle's path.
type verified struct {
	Path string `json:"path"`
	*aivs.Report
}

// Run verifies every bundle and reports how many are bad.
func (c *bundleVerifyCommand) Run(ctx context.Context, con *console) error {
	options, ring, err := c.options()
	if err != nil {
		return err
	}
	beside, err := c.open(ring)
	if err != nil {
		return err
	}
	paths, searched, err := bundlesIn(c.Paths)
	if err != nil {
		return err
	}
	between, good := 0, []aivs.Located{}
	for _, path := range paths {
		report, err := judgeFile(ctx, path, options, beside, len(paths) == 1)
		if err != nil {
			return err
		}
		if report.Intact {
			good = append(good, aivs.Located{Path: path, Report: report})
		}
		if err := c.show(con.out, &verified{path, report}, len(paths) == 1); err != nil {
			return err
		}
	}
	if searched {
		collection := aivs.CheckCollection(good)
		between = len(collection.Faults)
		if err := c.showCollection(con.out, collection); err != nil {
			return err
		}
	}
	return c.conclude(con.out, len(paths), len(good), between)
}

// judgeFile verifies a bundle and the files next to it. If it is one of many and cannot be
// read, it counts as bad and the others are still verified.
func judgeFile(ctx context.Context, path string, options aivs.Options, beside *sidecars, alone bool) (*aivs.Report, error) {
	report, err := verifyFile(ctx, path, options)
	if err == nil {
		err = beside.check(path, report)
	}
	if err != nil && !alone && ctx.Err() == nil {
		return aivs.Unreadable(err), nil
	}
	return report, err
}

// options returns the requirements for each bundle, and the key list if one is given.
func (c *bundleVerifyCommand) options() (options aivs.Options, ring *keyring.Ring, err error) {
	options.RequireSignature = c.RequireSignature
	if options.Keys, err = readKeys(c.Key); err != nil {
		return options, nil, err
	}
	if ring, err = readRing(c.Keyring, options.Keys); ring == nil {
		return options, nil, err
	}
	options.Signer = func(key ed25519.PublicKey, exportedAt time.Time) error {
		return ring.Accept(options.Keys, key, keyring.Session, exportedAt)
	}
	return options, ring, nil
}

// showCollection writes the result of the checks between the bundles of a directory.
func (c *bundleVerifyCommand) showCollection(w io.Writer, collection *aivs.Collection) error {
	if c.JSON {
		return writeJSON(w, map[string]*aivs.Collection{"collection": collection})
	}
	for _, f := range collection.Faults {
		if _, err := fmt.Fprintf(w, "FAIL  %s: %s\n", printable(f.Where), printable(f.Message)); err != nil {
			return err
		}
	}
	for _, late := range collection.Late {
		if _, err := fmt.Fprintf(w, "LATE  %s\n", printable(late)); err != nil {
			return err
		}
	}
	for _, session := range collection.Open {
		if _, err := fmt.Fprintf(w, "OPEN  %s: its last part is not here, or was not sealed yet\n", printable(session)); err != nil {
			return err
		}
	}
	return nil
}

// show writes a report: in full for one bundle, one line for each of many.
func (c *bundleVerifyCommand) show(w io.Writer, v *verified, alone bool) error {
	switch {
	case c.JSON:
		return writeJSON(w, v)
	case alone:
		return v.WriteText(w)
	}
	word, _, _ := strings.Cut(v.Conclusion(), ":")
	if _, err := fmt.Fprintf(w, "%s  %s  %s, session %q, %d rows, signature %s%s\n",
		word, printable(v.Path), v.Dialect, v.SessionID, v.Rows, v.SignatureText(), verdictOf(v.Report)); err != nil {
		return err
	}
	for _, f := range v.Faults {
		if _, err := fmt.Fprintf(w, "      %q: %s\n", f.Where, f.Message); err != nil {
			return err
		}
	}
	return nil
}

// verdictOf returns the recorded verdict as a suffix of a line; empty if there is none.
func verdictOf(r *aivs.Report) string {
	if r.Verdict == nil {
		return ""
	}
	return ", recorded verdict " + strings.ToUpper(string(r.Verdict.RecommendedAction))
}

// conclude writes a summary and what is not proven. A full report contains that itself.
func (c *bundleVerifyCommand) conclude(w io.Writer, all, good, between int) error {
	if all > 1 && !c.JSON {
		text := fmt.Sprintf("%d bundles, %d intact, %d not, %d faults between bundles\n\nNot proven:\n  %s\n",
			all, good, all-good, between, strings.Join(aivs.NotProven(), "\n  "))
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	if good < all || between > 0 {
		return errFoundBad
	}
	return nil
}

func verifyFile(ctx context.Context, path string, options aivs.Options) (*aivs.Report, error) {
	file, err := openPlain(ctx, path)
	if err != nil {
		return nil, err
	}
	report, err := aivs.Verify(file, options)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", path, err)
	}
	return report, nil
}

// bundlesIn returns the files, and the bundles within the directories. searched
// reports whether there were directories.
func bundlesIn(paths []string) (found []string, searched bool, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", errNothing, err)
		}
		if !info.IsDir() {
			found = append(found, path)
			continue
		}
		searched = true
		below, err := bundlesBelow(path)
		if err != nil {
			return nil, false, fmt.Errorf("search %s: %w", path, err)
		}
		found = append(found, below...)
	}
	if len(found) == 0 {
		return nil, false, fmt.Errorf("%w: no .tar.gz in %s", errNothing, strings.Join(paths, ", "))
	}
	return found, searched, nil
}

// bundlesBelow returns the bundles in a directory and in its subdirectories, including links
// to bundles. It does not follow links to directories, which could form a cycle.
// It also returns a directory that cannot be searched: verifying it fails with the reason.
func bundlesBelow(directory string) (found []string, err error) {
	root := directory + string(filepath.Separator) // the path may itself be a link
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || isBundle(name, entry) {
			found = append(found, name)
		}
		return nil
	})
	return found, err
}

// isBundle reports whether an entry has the name of a bundle and is a file, a link to a
// file, or a dangling link.
func isBundle(name string, entry fs.DirEntry) bool {
	if !strings.HasSuffix(name, ".tar.gz") {
		return false
	}
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	target, err := os.Stat(name)
	return err != nil || target.Mode().IsRegular()
}
