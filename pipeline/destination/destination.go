package destination

import (
	"context"
	"fmt"
	"io"
	"io/fs"
)

// Destination is a place that receives a copy of each bundle.
type Destination interface {
	// Location returns the address without credentials: nats:bundles, https://host/bucket.
	Location() string
	// Ready returns nil when the destination accepts copies.
	Ready(ctx context.Context) error
	// Deliver stores content under a name with slashes; sha256 is its digest in hexadecimal. It
	// changes nothing where the name already has that content; where the name has another
	// content, the error wraps fs.ErrExist. The name appears only once all of the content is
	// stored.
	// content may be read several times. It can be read at an offset (io.ReaderAt) where it is a
	// file.
	Deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error
}

// ErrTaken says that the name has another content, which is left unchanged.
var ErrTaken = fmt.Errorf("another content has this name: %w", fs.ErrExist)

// Taken returns an error that wraps ErrTaken and states both contents.
func Taken(there, wanted string) error {
	return fmt.Errorf("%w: it has SHA-256 %s, not %s, and is left unchanged", ErrTaken, there, wanted)
}
