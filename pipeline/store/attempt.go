package store

import (
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrUnwritten reports that ClickHouse acknowledged an INSERT although it could not write all of
// it to its disk. The INSERT must be retried.
var ErrUnwritten = errors.New("ClickHouse answered, and could not write everything to its disk, which may be full")

// attempt is one INSERT, and the failed writes that the server counts meanwhile.
//
// A ClickHouse server answers an INSERT whose write failed with an error. The embedded library
// (26.7) ignores the failure and commits a part whose files are empty. Only this count shows the
// failure. Package engine then restarts the library, which detaches such parts.
type attempt struct {
	failed int64 // number of failed writes
}

// note adds the server's counts since the last call.
func (a *attempt) note(events []clickhouse.ProfileEvent) {
	for i := range events {
		if events[i].Name == "WriteBufferFromFileDescriptorWriteFailed" {
			a.failed += events[i].Value
		}
	}
}

// send sends the batch. It returns nil only if everything was written.
func (a *attempt) send(batch driver.Batch) error {
	if err := batch.Send(); err != nil {
		return err
	}
	if a.failed > 0 {
		return ErrUnwritten
	}
	return nil
}
