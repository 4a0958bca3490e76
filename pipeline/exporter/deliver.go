package exporter

import (
	"context"
	"io"
	"os"
	"path/filepath"
)

// Destination is where a copy of each bundle goes besides the bundle directory
// (stream.Objects). The same bundle under the same name again changes nothing.
type Destination interface {
	Deliver(ctx context.Context, name, sha256 string, open func() (io.ReadCloser, error)) error
}

// deliver brings a placed bundle to every destination. It comes before the bundle is
// marked as sealed: after a crash it is done again, from the file.
func (e *exporter) deliver(ctx context.Context, j *job) error {
	if j.bundle == nil {
		return nil
	}
	file := j.part.Plan.File
	open := func() (io.ReadCloser, error) { return os.Open(filepath.Join(e.cfg.bundleDir(), file)) }
	for _, d := range e.destinations {
		if err := d.Deliver(ctx, filepath.ToSlash(file), j.bundle.SHA256, open); err != nil {
			return err
		}
		e.metrics.delivered.Inc()
	}
	return nil
}
