package database

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// commentText has the comments of all tables, views and columns. The documents are written from it,
// too (documents_test.go).
//
//go:embed sql/comments.txt
var commentText string

// commented is a table or view with its comments.
type commented struct {
	name    string
	of      string // table whose comments a view's columns have by default
	comment string
	columns map[string]string
}

// comments are all tables and views in the order of the file. The first one, every, has the
// comments of columns that have no other.
type comments []commented

// parseComments reads the format that the file describes.
func parseComments(text string) (all comments, err error) {
	for number, line := range strings.Split(text, "\n") {
		fault := func() error { return fmt.Errorf("comments.txt:%d: %q", number+1, line) }
		if line == "" || line[0] == '#' {
			continue
		}
		if head, found := strings.CutPrefix(line, "["); found {
			name, of, _ := strings.Cut(strings.TrimSuffix(head, "]"), " of ")
			all = append(all, commented{name: name, of: of, columns: map[string]string{}})
			continue
		}
		column, comment, found := strings.Cut(line, "= ")
		if !found || len(all) == 0 {
			return nil, fault()
		}
		last := &all[len(all)-1]
		switch column = strings.TrimSuffix(column, " "); {
		case column == "" && last.comment == "":
			last.comment = comment
		case column != "" && last.columns[column] == "":
			last.columns[column] = comment
		default:
			return nil, fault()
		}
	}
	return all, nil
}

// of returns the comments of a table or view, or nil if it has none. The part of a table on one
// shard has those of the table.
func (all comments) of(name string) *commented {
	name = strings.TrimSuffix(name, localSuffix)
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// column returns the comment of a column, or "".
func (all comments) column(of *commented, column string) string {
	for of != nil {
		if comment := of.columns[column]; comment != "" {
			return comment
		}
		of = all.of(of.of)
	}
	return all[0].columns[column]
}

// liveColumn is a column of the database, or with an empty name a table or view, and its comment.
type liveColumn struct {
	Table   string `ch:"table"`
	Name    string `ch:"name"`
	Comment string `ch:"comment"`
}

const queryComments = `
SELECT t.name AS table, '' AS name, t.comment AS comment, 0 AS position FROM system.tables AS t WHERE database = {database:String}
UNION ALL
SELECT table, name, comment, position FROM system.columns WHERE database = {database:String}
ORDER BY table, position`

// describeAll is describe on the server of a DSN.
func (l layout) describeAll(ctx context.Context, dsn string) error {
	options, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	return errors.Join(l.describe(ctx, conn), conn.Close())
}

// describe writes the comments into the database that it does not have yet. Comments are not part
// of the migrations, so a changed comment needs none. A user who may not alter tables leaves the
// comments as they are: they change no result.
func (l layout) describe(ctx context.Context, conn driver.Conn) error {
	statements, err := l.commentStatements(ctx, conn)
	if err != nil {
		return fmt.Errorf("read the comments of tables and columns: %w", err)
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clusterPins))
	for _, statement := range statements {
		err := conn.Exec(ctx, statement)
		if exception, answered := errors.AsType[*clickhouse.Exception](err); answered && exception.Code == codeAccessDenied {
			return nil
		}
		if err != nil {
			return fmt.Errorf("write the comments of tables and columns: %w", err)
		}
	}
	return nil
}

// codeAccessDenied is ClickHouse's error code for a missing privilege.
const codeAccessDenied = 497

// commentStatements returns a statement for each table or view with a comment that differs.
func (l layout) commentStatements(ctx context.Context, conn driver.Conn) (statements []string, err error) {
	all, err := parseComments(commentText)
	if err != nil {
		return nil, err
	}
	var live []liveColumn
	if err := conn.Select(ctx, &live, "SELECT table, name, comment FROM ("+queryComments+")", clickhouse.Named("database", l.database)); err != nil {
		return nil, err
	}
	for rest := live; len(rest) > 0; {
		table := rest[0].Table
		end := slices.IndexFunc(rest, func(c liveColumn) bool { return c.Table != table })
		if end < 0 {
			end = len(rest)
		}
		if statement := l.commentStatement(all, table, rest[:end]); statement != "" {
			statements = append(statements, statement)
		}
		rest = rest[end:]
	}
	return statements, nil
}

// commentStatement returns the statement that writes the missing comments of one table or view, or
// "" if none is missing. Tables of others have no comments here.
func (l layout) commentStatement(all comments, table string, live []liveColumn) string {
	of := all.of(table)
	if of == nil {
		return ""
	}
	var changes []string
	for _, c := range live {
		switch want := all.column(of, c.Name); {
		case c.Name == "" && c.Comment != of.comment:
			changes = append(changes, "MODIFY COMMENT "+quoted(of.comment))
		case c.Name != "" && c.Comment != want && want != "":
			changes = append(changes, "COMMENT COLUMN `"+c.Name+"` "+quoted(want))
		}
	}
	if len(changes) == 0 {
		return ""
	}
	at := ""
	if l.Name != "" && table != versionTable { // the record of migrations is on one server
		at = l.onCluster()
	}
	return fmt.Sprintf("ALTER TABLE `%s`.`%s`%s\n    %s", l.database, table, at, strings.Join(changes, ",\n    "))
}

// quoted returns a text as a literal of ClickHouse.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
