package database

import (
	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// recordBytes is the memory that a column of records begins with: enough for a block of 128 usual
// records, as sealing reads them. The driver makes the columns of each block anew, and otherwise
// grows each by a quarter of its size at a time. All that garbage is four times the records.
const recordBytes = 256 << 10

// The driver has one such function for the whole process.
func init() {
	column.WithColStrProvider(func(name string) proto.ColStr {
		if name != "raw" {
			return proto.ColStr{}
		}
		return proto.ColStr{Buf: make([]byte, 0, recordBytes)}
	})
}
