package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Destination is a place that gets a copy of each bundle.
type Destination interface {
	// Location says where it is, without credentials: nats:bundles, https://host/bucket.
	Location() string
	// Ready returns nil when copies can be brought.
	Ready(ctx context.Context) error
	// Deliver stores content, whose SHA-256 that is (hexadecimal), under a name with
	// slashes. It changes nothing where the name has that content already; where it
	// has another one, the error wraps ErrTaken. Until all of it is stored the name
	// is not there. content may be read several times; it can be read at an offset
	// (io.ReaderAt) where it is a file.
	Deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error
}

// ErrTaken says that there is another content under the name. It is left as it is.
var ErrTaken = errors.New("another content is there under this name, and is not written over")

// Taken returns an error that wraps ErrTaken and says what is there.
func Taken(there, wanted string) error {
	return fmt.Errorf("%w: it has SHA-256 %s, to be copied is %s", ErrTaken, there, wanted)
}
