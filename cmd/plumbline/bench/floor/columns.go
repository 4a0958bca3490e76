package floor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// column is one column of the floor's table.
type column struct {
	name   string           // also in table traces
	values func(*block) any // of all rows of a block
	reset  func(*block)     // keeps the memory, and releases what it refers to
}

func of[T any](name string, values func(*block) *[]T) column {
	return column{name: name, values: func(b *block) any { return *values(b) }, reset: func(b *block) {
		clear(*values(b))
		*values(b) = (*values(b))[:0]
	}}
}

// columns are the columns that every block inserts.
var columns = []column{
	of("event_hour", func(b *block) *[]uint32 { return &b.eventHour }),
	of("tenant", func(b *block) *[]string { return &b.tenant }),
	of("agent_id", func(b *block) *[]string { return &b.agentID }),
	of("trace_id", func(b *block) *[]string { return &b.traceID }),
	of("event_time", func(b *block) *[]int64 { return &b.eventTime }),
	of("received_at", func(b *block) *[]int64 { return &b.received }),
	of("stream_created", func(b *block) *[]int64 { return &b.created }),
	of("stream_sequence", func(b *block) *[]uint64 { return &b.sequence }),
	of("stream_partition", func(b *block) *[]uint16 { return &b.partition }),
	of("card_id", func(b *block) *[]string { return &b.cardID }),
	of("session_id", func(b *block) *[]string { return &b.sessionID }),
	of("session_end", func(b *block) *[]bool { return &b.sessionEnd }),
	of("action_type", func(b *block) *[]string { return &b.actionType }),
	of("action_name", func(b *block) *[]string { return &b.actionName }),
	of("action_category", func(b *block) *[]string { return &b.actionCategory }),
	of("selected", func(b *block) *[]string { return &b.selected }),
	of("confidence", func(b *block) *[]*float64 { return &b.confidence }),
	of("escalation_evaluated", func(b *block) *[]bool { return &b.evaluated }),
	of("escalation_required", func(b *block) *[]bool { return &b.required }),
	of("escalation_id", func(b *block) *[]string { return &b.escalationID }),
	of("escalation_status", func(b *block) *[]string { return &b.escalationStatus }),
	of("conversation_turn", func(b *block) *[]*int64 { return &b.turn }),
	of("tool_name", func(b *block) *[]string { return &b.toolName }),
	of("cost_cents", func(b *block) *[]int64 { return &b.costCents }),
	of("raw", func(b *block) *[]string { return &b.raw }),
}

// block holds the rows of one INSERT, column by column. Its texts share the memory of the messages.
type block struct {
	eventHour                                        []uint32
	tenant, agentID, traceID, cardID, sessionID      []string
	eventTime, received, created                     []int64 // nanoseconds since 1970
	sequence                                         []uint64
	partition                                        []uint16
	actionType, actionName, actionCategory, selected []string
	escalationID, escalationStatus, toolName         []string
	confidence                                       []*float64
	turn                                             []*int64
	costCents                                        []int64
	sessionEnd, evaluated, required                  []bool
	raw                                              []string
	scanned                                          record
}

// origin is what a message says about itself.
type origin struct {
	sequence  uint64
	partition uint16
	received  int64 // nanoseconds since 1970
	created   int64 // the stream, likewise
}

func (b *block) len() int { return len(b.raw) }

// add scans a trace and appends its row.
func (b *block) add(trace []byte, from origin) {
	r := &b.scanned
	r.scan(trace)
	at := timeOf(r.timestamp)
	b.eventHour = append(b.eventHour, uint32(at.Unix()/3600))
	b.tenant = append(b.tenant, "default")
	b.agentID = append(b.agentID, r.agentID)
	b.traceID = append(b.traceID, r.traceID)
	b.eventTime = append(b.eventTime, at.UnixNano())
	b.received = append(b.received, from.received)
	b.created = append(b.created, from.created)
	b.sequence = append(b.sequence, from.sequence)
	b.partition = append(b.partition, from.partition)
	b.cardID = append(b.cardID, r.cardID)
	b.sessionID = append(b.sessionID, r.sessionID)
	b.sessionEnd = append(b.sessionEnd, r.sessionEnd == "true")
	b.actionType = append(b.actionType, r.actionType)
	b.actionName = append(b.actionName, r.actionName)
	b.actionCategory = append(b.actionCategory, r.actionCategory)
	b.selected = append(b.selected, r.selected)
	b.confidence = append(b.confidence, number(r.confidence, parseFloat))
	b.evaluated = append(b.evaluated, r.evaluated == "true")
	b.required = append(b.required, r.required == "true")
	b.escalationID = append(b.escalationID, r.escalationID)
	b.escalationStatus = append(b.escalationStatus, r.escalationStatus)
	b.turn = append(b.turn, number(r.turn, parseInt))
	b.toolName = append(b.toolName, r.toolName)
	cost, _ := parseInt(r.costCents) // 0 without a cost
	b.costCents = append(b.costCents, cost)
	b.raw = append(b.raw, share(trace))
}

// timeOf returns the time in a timestamp; zero if it cannot be read.
func timeOf(timestamp string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, timestamp)
	if err != nil {
		return time.Unix(0, 0)
	}
	return at
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
func parseInt(text string) (int64, error)     { return strconv.ParseInt(text, 10, 64) }

// number returns the value of a member; nil if the trace does not have it.
func number[T any](text string, parse func(string) (T, error)) *T {
	v, err := parse(text)
	if err != nil {
		return nil
	}
	return &v
}

// create creates table floor from the definition of table traces: the same types, codecs, sort key,
// partitions and fsync settings.
func create(ctx context.Context, db driver.Conn) error {
	rows, err := db.Query(ctx, "SELECT name, type, compression_codec FROM system.columns WHERE database = currentDatabase() AND table = 'traces'")
	if err != nil {
		return fmt.Errorf("read the columns of table traces: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err reports what went wrong
	defined := map[string]string{}
	for rows.Next() {
		var name, kind, codec string
		if err := rows.Scan(&name, &kind, &codec); err != nil {
			return fmt.Errorf("read the columns of table traces: %w", err)
		}
		defined[name] = name + " " + kind + " " + codec
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the columns of table traces: %w", err)
	}
	definitions := make([]string, len(columns))
	for i, c := range columns {
		if definitions[i] = defined[c.name]; definitions[i] == "" {
			return fmt.Errorf("table traces has no column %s: migrate the database first", c.name)
		}
	}
	err = db.Exec(ctx, "CREATE TABLE floor ("+strings.Join(definitions, ", ")+`)
ENGINE = MergeTree PARTITION BY toYYYYMM(received_at) ORDER BY (event_hour, tenant, agent_id, trace_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1`)
	if err != nil {
		return fmt.Errorf("create table floor: %w", err)
	}
	return nil
}

// insert stores the rows of a block and empties it.
func (b *block) insert(ctx context.Context, db driver.Conn) error {
	batch, err := db.PrepareBatch(ctx, statement())
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }() // after Send there is nothing to close
	for i, c := range columns {
		if err := batch.Column(i).Append(c.values(b)); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	if err := batch.Send(); err != nil {
		return err
	}
	for _, c := range columns {
		c.reset(b)
	}
	return nil
}

func statement() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return "INSERT INTO floor (" + strings.Join(names, ", ") + ")"
}
