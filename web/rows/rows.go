// Package rows reads what the console shows.
//
// It owns the console's queries, one file of sql each, and the form of their rows. It does not own the
// tables and the connections (pipeline/database), and writes nothing.
//
// Invariants: every query names the tenant and the agents that the reader may see; values reach a
// query only as bound parameters; every query has a limit of rows that it returns, and those that
// read traces or verdicts have a bound in the time of receipt, or the agent or the session as a filter.
package rows

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Reader reads rows of one tenant. Any goroutine may use it.
type Reader struct{ db *database.DB }

// Open prepares the connections. The first one is made on demand.
func Open(cfg database.Config) (*Reader, error) {
	db, err := database.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Reader{db}, nil
}

// Close ends the connections.
func (r *Reader) Close() error { return r.db.Close() }

// Ping returns nil if the database answers.
func (r *Reader) Ping(ctx context.Context) error { return r.db.Ping(ctx) }

// argument is one bound parameter.
func argument(name string, value any) any { return clickhouse.Named(name, value) }

// agentsSeen is the condition for which $agents stands in a query: the reader may see the agent of the row. Without a
// restriction it is a constant, which costs nothing. The tables are sorted by agents within each hour, and of the
// condition only the range of names bounds what is read.
const agentsSeen = `({every:UInt8} OR agent_id BETWEEN {lowest:String} AND {highest:String}
    AND (has({agents:Array(String)}, agent_id) OR arrayExists(prefix -> startsWith(agent_id, prefix), {prefixes:Array(String)})))`

// within binds the agents that a query may read.
func within(agents store.Agents) []any {
	every := uint8(0)
	if slices.Contains(agents.Prefixes, "") {
		every = 1
	}
	lowest, highest := namesOf(agents)
	return []any{argument("every", every), argument("lowest", lowest), argument("highest", highest),
		argument("agents", append([]string{}, agents.IDs...)), argument("prefixes", append([]string{}, agents.Prefixes...))}
}

// greatest is not below any text that is as long as a name may be.
var greatest = strings.Repeat(string(utf8.MaxRune), schema.MaxIDBytes/utf8.UTFMax)

// namesOf returns the range of the agents' names.
func namesOf(agents store.Agents) (lowest, highest string) {
	first, last := slices.Concat(agents.IDs, agents.Prefixes), slices.Clone(agents.IDs)
	for _, prefix := range agents.Prefixes {
		last = append(last, prefix+greatest)
	}
	if len(first) == 0 {
		return "", ""
	}
	return slices.Min(first), slices.Max(last)
}

// since binds the beginning of a time.
func since(at time.Time) any { return argument("since", at.UTC().Unix()) }

// read returns the rows of a query that selects the columns of T.
func read[T any](ctx context.Context, r *Reader, what, query string, args ...any) (rows []T, err error) {
	for row, err := range database.Each[T](ctx, r.db, query, args...) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		rows = append(rows, *row)
	}
	return rows, nil
}

// first returns the first row of a query; the zero row if there is none.
func first[T any](ctx context.Context, r *Reader, what, query string, args ...any) (row T, found bool, err error) {
	rows, err := read[T](ctx, r, what, query, args...)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

//go:embed sql/*.sql
var files embed.FS

// query returns the text of a query of sql.
func query(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // the file is part of the program
	}
	return strings.ReplaceAll(string(text), "$agents", agentsSeen)
}
