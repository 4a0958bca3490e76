package pipelinetest

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"

	"github.com/plumbline/plumbline/pipeline/store"
)

// changed are settings that make a statement return only when its change can be read: a mutation
// is done, and rows have reached their shards.
const changed = "mutations_sync=2&insert_distributed_sync=1"

// rowsHead matches the beginning of a statement about the rows that a server itself holds. For a
// table over all shards, ClickHouse refuses such a statement, or leaves the rows unchanged.
var rowsHead = regexp.MustCompile(`^((?:ALTER|TRUNCATE) TABLE|SYSTEM (?:STOP|START) MERGES) (\w+)( DELETE | UPDATE | MODIFY SETTING | RESET SETTING |$)`)

// Exec runs a statement with all privileges, and waits until its change can be read. A statement
// about the rows of a table runs on each server that holds some of them.
func (r *Rig) Exec(t testing.TB, format string, args ...any) {
	t.Helper()
	statement, servers := fmt.Sprintf(format, args...), r.servers[:1]
	if r.cluster != "" && rowsHead.MatchString(statement) {
		statement, servers = rowsHead.ReplaceAllString(statement, "${1} ${2}_local${3}"), r.servers
	}
	for _, server := range servers {
		exec(t, server, statement)
	}
}

func exec(t testing.TB, server *store.Store, statement string) {
	t.Helper()
	result, err := server.Query(t.Context(), statement)
	if errors.Is(err, io.EOF) {
		return // the statement has no result
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	for _, err := range result.Rows {
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Local returns the name of the part of a table whose rows a server itself holds.
func (r *Rig) Local(table string) string {
	if r.cluster != "" {
		return table + "_local"
	}
	return table
}
