package database

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// Class is how to handle an error.
type Class int

// The three classes of an error.
const (
	Retry Class = iota // try again later: it may pass, or its outcome is unknown
	Split              // some row can never be stored: find it, store the others
	Stop               // a fault of the deployment: nothing passes until someone repairs it
)

func (c Class) String() string {
	return [...]string{"retry", "split", "stop"}[c]
}

// ErrDeployment marks the faults of the deployment that the pipeline itself finds.
var ErrDeployment = errors.New("the tables do not fit this version; run plumbline migrate")

// ClickHouse answers 252 for two different faults. Only their text distinguishes them.
const (
	codeTooManyParts  = 252
	textTooManyBlocks = "partitions for single INSERT block"
)

// splitCodes are errors about a value: some row of the batch causes them.
var splitCodes = map[int32]string{
	6: "CANNOT_PARSE_TEXT", 27: "CANNOT_PARSE_INPUT_ASSERTION_FAILED", 38: "CANNOT_PARSE_DATE",
	41: "CANNOT_PARSE_DATETIME", 53: "TYPE_MISMATCH", 69: "ARGUMENT_OUT_OF_BOUND", 72: "CANNOT_PARSE_NUMBER",
	117: "INCORRECT_DATA", 128: "TOO_LARGE_ARRAY_SIZE", 131: "TOO_LARGE_STRING_SIZE",
	190: "SIZES_OF_ARRAYS_DONT_MATCH", 321: "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
	349: "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN", 469: "VIOLATED_CONSTRAINT", 691: "UNKNOWN_ELEMENT_OF_ENUM",
}

// stopCodes are errors about tables, users and settings: every batch meets them.
var stopCodes = map[int32]string{
	10: "NOT_FOUND_COLUMN_IN_BLOCK", 16: "NO_SUCH_COLUMN_IN_TABLE", 20: "NUMBER_OF_COLUMNS_DOESNT_MATCH",
	43: "ILLEGAL_TYPE_OF_ARGUMENT", 44: "ILLEGAL_COLUMN", 46: "UNKNOWN_FUNCTION", 47: "UNKNOWN_IDENTIFIER",
	48: "NOT_IMPLEMENTED", 60: "UNKNOWN_TABLE", 62: "SYNTAX_ERROR", 81: "UNKNOWN_DATABASE", 115: "UNKNOWN_SETTING",
	164: "READONLY", 192: "UNKNOWN_USER", 193: "WRONG_PASSWORD", 195: "IP_ADDRESS_NOT_ALLOWED",
	452: "SETTING_CONSTRAINT_VIOLATION", 497: "ACCESS_DENIED", 516: "AUTHENTICATION_FAILED",
}

// The codes of queries that a limit ended.
const (
	codeTooManyRows = 158
	codeTimeout     = 159 // of a query, and of ON CLUSTER that waited too long for a server
	codeMemory      = 241
)

// TooBroad reports whether a query was ended because it needs more rows or memory than its Limits
// allow.
func TooBroad(err error) bool {
	exception, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && (exception.Code == codeTooManyRows || exception.Code == codeMemory && !strings.Contains(exception.Message, "(total)"))
}

// TimedOut reports whether a query was ended because its time was over.
func TimedOut(err error) bool {
	exception, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && exception.Code == codeTimeout || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Classify returns how to handle an error of this package. An unknown error is Retry: a batch is
// never given up because of an error code that this version does not know.
func Classify(err error) Class {
	// The driver refuses to send a block if the columns of the live table are not those that this
	// version writes.
	_, otherBlock := errors.AsType[*proto.BlockError](err)
	_, otherColumn := errors.AsType[*column.ColumnConverterError](err)
	if otherBlock || otherColumn || errors.Is(err, ErrDeployment) {
		return Stop
	}
	exception, ok := errors.AsType[*clickhouse.Exception](err)
	if !ok {
		return Retry
	}
	if exception.Code == codeTooManyParts && strings.Contains(exception.Message, textTooManyBlocks) {
		return Split
	}
	if _, ok := splitCodes[exception.Code]; ok {
		return Split
	}
	if _, ok := stopCodes[exception.Code]; ok {
		return Stop
	}
	return Retry
}
