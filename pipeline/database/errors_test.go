package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

func TestClassify(t *testing.T) {
	exception := func(code int32, message string) error {
		return fmt.Errorf("insert: %w", &clickhouse.Exception{Code: code, Message: message})
	}
	for name, test := range map[string]struct {
		err  error
		want Class
	}{
		"connection refused":        {syscall.ECONNREFUSED, Retry},
		"cut":                       {io.ErrUnexpectedEOF, Retry},
		"reset":                     {&net.OpError{Op: "write", Err: syscall.ECONNRESET}, Retry},
		"timeout":                   {context.DeadlineExceeded, Retry},
		"cancelled":                 {context.Canceled, Retry},
		"pool exhausted":            {clickhouse.ErrAcquireConnTimeout, Retry},
		"rows were not written":     {ErrUnwritten, Retry},
		"what nobody knows":         {errors.New("surprise"), Retry},
		"code nobody knows":         {exception(99999, "surprise"), Retry},
		"too many parts":            {exception(252, "Too many parts (3001 with average size of 1.00 KiB). Merges are processing significantly slower than inserts"), Retry},
		"memory":                    {exception(241, "Memory limit (total) exceeded"), Retry},
		"timeout exceeded":          {exception(159, "Timeout exceeded"), Retry},
		"too slow":                  {exception(160, "Estimated query execution time is too long"), Retry},
		"read only":                 {exception(242, "Table is in readonly mode"), Retry},
		"keeper":                    {exception(999, "Session expired"), Retry},
		"too many queries":          {exception(202, "Too many simultaneous queries"), Retry},
		"unknown status of insert":  {exception(319, "Unknown status"), Retry},
		"disk full":                 {exception(243, "Cannot reserve 1.00 MiB, not enough space"), Retry},
		"query cancelled":           {exception(394, "Query was cancelled"), Retry},
		"quorum":                    {exception(285, "Number of alive replicas is less than requested quorum"), Retry},
		"same query id":             {exception(216, "Query with id = x is already running"), Retry},
		"too many partitions":       {exception(252, "Too many partitions for single INSERT block (more than 100)"), Split},
		"cannot parse":              {exception(27, "Cannot parse input"), Split},
		"cannot parse number":       {exception(72, "Cannot parse number"), Split},
		"cannot parse text":         {exception(6, "Cannot parse"), Split},
		"type mismatch":             {exception(53, "Type mismatch"), Split},
		"null":                      {exception(349, "Cannot insert NULL"), Split},
		"enum":                      {exception(691, "Unknown element"), Split},
		"constraint":                {exception(469, "Constraint is violated"), Split},
		"string too large":          {exception(131, "Too large string size"), Split},
		"unknown table":             {exception(60, "Table does not exist"), Stop},
		"unknown database":          {exception(81, "Database does not exist"), Stop},
		"unknown column":            {exception(16, "No such column"), Stop},
		"unknown identifier":        {exception(47, "Unknown identifier"), Stop},
		"authentication":            {exception(516, "Authentication failed"), Stop},
		"access":                    {exception(497, "Not enough privileges"), Stop},
		"unknown setting":           {exception(115, "Unknown setting"), Stop},
		"readonly user":             {exception(164, "Cannot execute query in readonly mode"), Stop},
		"missing tables":            {missingTable("traces"), Stop},
		"driver refuses the block":  {&proto.BlockError{Op: "Encode", Err: errors.New("x")}, Stop},
		"driver refuses the column": {&column.ColumnConverterError{Op: "Append"}, Stop},
	} {
		if got := Classify(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
