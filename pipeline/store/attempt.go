package store

import (
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrUnwritten says that ClickHouse answered an INSERT as done, and could not write all of
// it to its disk. It is to be retried.
var ErrUnwritten = errors.New("ClickHouse answered, and could not write everything to its disk, which may be full")

// attempt is one INSERT, and what the server counts meanwhile.
//
// A ClickHouse server answers an INSERT whose write failed with an error. The embedded
// library (26.7) ignores the failure and commits a part whose files are empty: only this
// count shows it. Package engine then starts it again, which detaches such parts.
type attempt struct {
	failed int64 // writes
}

// note takes what the server has counted since the last time.
func (a *attempt) note(events []clickhouse.ProfileEvent) {
	for i := range events {
		if events[i].Name == "WriteBufferFromFileDescriptorWriteFailed" {
			a.failed += events[i].Value
		}
	}
}

// send sends the batch. Nil means that everything was written.
func (a *attempt) send(batch driver.Batch) error {
	if err := batch.Send(); err != nil {
		return err
	}
	if a.failed > 0 {
		return ErrUnwritten
	}
	return nil
}
