package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// stamp describes the time stamp next to a bundle.
type stamp struct {
	there bool
	bad   error // it is not of this bundle, or not by a trusted authority
	late  error // it disagrees with the bundle's time or the key's end
}

// readStamp reads the time stamp next to a verified bundle.
func (c *check) readStamp(path string, report *aivs.Report) (s stamp) {
	reply, err := durable.ReadPlain(filepath.Join(c.Bundles, path)+anchor.TimestampSuffix, anchor.MaxReply)
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	if s.there = true; len(c.Authorities) == 0 {
		return s
	}
	var at time.Time
	if err == nil {
		at, err = anchor.VerifyTimestamp(reply, report.SignatureBytes, c.Authorities, nil)
	}
	if s.bad = err; err == nil {
		s.late = anchor.CheckStampTime(at, report.ExportedAt, c.keyEnd(report.PublicKey))
	}
	return s
}

// keyEnd returns the end of a key, zero where it has none or is not listed.
func (c *check) keyEnd(public string) time.Time {
	if c.keys != nil {
		for _, key := range c.keys.Keys() {
			if key.PublicKey == public {
				return key.NotAfter
			}
		}
	}
	return time.Time{}
}

// checkStamps reports invalid time stamps, and bundles without a stamp although the exporter
// requested one.
func (c *check) checkStamps(context.Context) error {
	var began time.Time // export time of the first bundle with a valid stamp
	unchecked := 0
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		f := c.files[path]
		switch {
		case !f.stamp.there:
		case len(c.Authorities) == 0:
			unchecked++
		case f.stamp.bad != nil:
			c.differ(c.ofFile(StampBad, path), "%v", f.stamp.bad)
		case f.stamp.late != nil:
			c.differ(c.ofFile(StampLate, path), "%v", f.stamp.late)
		default:
			c.count().Stamps++
			began = earliest(began, f.exported)
		}
	}
	if unchecked > 0 {
		c.skip(fmt.Sprintf("time stamps: there are %d, and no certificate of a trusted authority was given", unchecked))
	}
	if began.IsZero() {
		return nil
	}
	return c.checkUnstamped(began)
}

// checkUnstamped reports bundles without a stamp that were sealed after the first stamped bundle
// and do not wait for a stamp.
func (c *check) checkUnstamped(began time.Time) error {
	waiting, err := tlog.Waiting(c.Stamps)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		f := c.files[path]
		if f.stamp.there || f.exported.Before(began) {
			continue
		}
		// A bundle leaves the waiting list only after its stamp exists, so check for the file
		// again.
		_, err := os.Stat(filepath.Join(c.Bundles, path) + anchor.TimestampSuffix)
		switch {
		case waiting[path], err == nil, f.opening.Part > c.sessions[f.of()].settled():
			c.count().UnderWay++
		case !errors.Is(err, fs.ErrNotExist):
			return err
		default:
			c.differ(c.ofFile(StampMissing, path), "there is no time stamp next to the bundle, and the bundle does not wait for one")
		}
	}
	return nil
}
