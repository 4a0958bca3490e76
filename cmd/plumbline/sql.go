package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/plumbline/plumbline/pipeline/database"
)

type sqlCommand struct {
	machineFlags  `embed:""`
	ClickHouseDSN string            `name:"clickhouse-dsn" placeholder:"DSN" help:"Database to read. Default: that of the running up."`
	Tenant        string            `placeholder:"TENANT" help:"Read the rows of this tenant only. Default: all rows that the user may read."`
	HTTP          string            `name:"clickhouse-http" placeholder:"URL" help:"HTTP interface of the database of --clickhouse-dsn. Default: port 8123 of its host, or 8443 with secure=true."`
	Query         string            `arg:"" optional:"" help:"The query, or several with a semicolon after each. Default: standard input; a prompt if that is a terminal."`
	File          string            `placeholder:"FILE" help:"Read the queries from a file; -: standard input."`
	Param         map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"Value of a parameter {NAME:Type} of the query."`
	Format        string            `placeholder:"FORMAT" help:"Format of a result without a clause FORMAT: any of ClickHouse's, or table, json (one object per row), csv. Default: table on a terminal, otherwise tab-separated values under a line with the names."`
	JSON          bool              `help:"The same as --format json."`
}

// Help returns the examples.
func (*sqlCommand) Help() string {
	return examples(
		"plumbline sql",
		"plumbline sql 'SELECT * FROM agents_now'",
		"plumbline sql --file queries.sql --format CSVWithNames",
		"plumbline sql --param agent=did:web:buyer.example 'SELECT * FROM problems WHERE agent_id = {agent:String}'",
	)
}

// formats are the short names of some of ClickHouse's formats.
var formats = map[string]string{"table": "PrettyCompactMonoBlock", "json": "JSONEachRow", "csv": "CSVWithNames", "tsv": "TabSeparatedWithNames"}

// Run runs queries with the reader's rights and prints what ClickHouse prints.
func (c *sqlCommand) Run(ctx context.Context, con *console) error {
	if c.Query != "" && c.File != "" {
		return usagef("give a query or --file, not both")
	}
	if c.JSON && c.Format != "" && c.Format != "json" {
		return usagef("give --json or --format, not both")
	}
	text, prompted, err := c.text(con)
	if err != nil {
		return err
	}
	statements, rest := splitStatements(text)
	if rest.text != "" {
		statements = append(statements, rest)
	}
	if len(statements) == 0 && !prompted {
		return fmt.Errorf("%w: give a query, as an argument, with --file or on standard input", errNothing)
	}
	server, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	if prompted {
		return (&sqlPrompt{server: server, statement: c.statement(con.out)}).run(ctx, con)
	}
	out := resultWriter(con.out)
	for i, statement := range statements {
		s := c.statement(con.out)
		s.Text = statement.placed()
		if err := server.Run(ctx, s, out); err != nil {
			which := "query"
			if len(statements) > 1 {
				which = fmt.Sprintf("query %d of %d, which begins in line %d", i+1, len(statements), statement.line)
			}
			return c.failure(ctx, which, err)
		}
	}
	return nil
}

// text returns the queries, or reports that the user is to be prompted for them.
func (c *sqlCommand) text(con *console) (text string, prompted bool, err error) {
	if c.Query != "" {
		return c.Query, false, nil
	}
	if c.File != "" && c.File != "-" {
		content, err := os.ReadFile(c.File)
		if err != nil {
			return "", false, fmt.Errorf("%w: %w", errNothing, err)
		}
		return string(content), false, nil
	}
	if c.File == "" && isTerminal(os.Stdin) && isTerminal(con.out) {
		return "", true, nil
	}
	content, err := io.ReadAll(con.in)
	if err != nil {
		return "", false, fmt.Errorf("read the query: %w", err)
	}
	return string(content), false, nil
}

// open opens the HTTP interface of the database that the flags name.
func (c *sqlCommand) open(ctx context.Context) (*database.HTTP, error) {
	dsn, address := c.ClickHouseDSN, c.HTTP
	if dsn == "" {
		at, err := c.find(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w; or name a database with --clickhouse-dsn", err)
		}
		dsn, address = at.ClickHouseDSN, cmp.Or(address, at.ClickHouseHTTP)
	}
	server, err := database.OpenHTTP(database.Config{DSN: dsn, Tenant: c.Tenant, Stage: "sql"}, address)
	if err == nil && c.Tenant != "" {
		err = server.OnlyTenant(c.Tenant)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return server, nil
}

// statement returns a statement without its text.
func (c *sqlCommand) statement(out io.Writer) database.Statement {
	format := c.Format
	if c.JSON {
		format = "json"
	}
	if format == "" {
		format = "tsv"
		if isTerminal(out) {
			format = "table"
		}
	}
	return database.Statement{Format: cmp.Or(formats[format], format), Parameters: c.Param}
}

// codeUnknownFormat is ClickHouse's error code for the name of a format that it does not have.
const codeUnknownFormat = 73

// remedies say what to do about an error, by ClickHouse's code.
var remedies = map[int]string{
	358: "\nredirect the output instead: plumbline sql … > FILE",            // INTO OUTFILE
	456: "\ngive each parameter of the query its value: --param NAME=VALUE", // a parameter without a value
}

// failure returns the error of a query. which names the query.
func (c *sqlCommand) failure(ctx context.Context, which string, err error) error {
	exception, failed := errors.AsType[*database.Exception](err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errInterrupted, err)
	case failed && exception.Code == codeUnknownFormat && c.Format != "":
		return usagef("--format %s: %w", c.Format, err)
	}
	if failed {
		return fmt.Errorf("%s: %w%s", which, err, remedies[exception.Code])
	}
	return fmt.Errorf("%s: %w", which, err)
}

// resultWriter returns where results go: to a terminal without the controls that text of others may
// contain, elsewhere unchanged.
func resultWriter(out io.Writer) io.Writer {
	if isTerminal(out) {
		return &controlWriter{w: out}
	}
	return out
}

// controlWriter shows controls, and bytes that are not UTF-8, as escapes. It keeps line feeds and
// tabs.
type controlWriter struct {
	w    io.Writer
	rest []byte // begin of a character whose other bytes have not come yet
}

func (c *controlWriter) Write(p []byte) (int, error) {
	text := append(c.rest, p...)
	var shown []byte
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			shown = fmt.Appendf(shown, `\x%02x`, text[0])
		case 0x80 <= r && r <= 0x9f:
			shown = fmt.Appendf(shown, `\u%04x`, r)
		default:
			shown = append(shown, text[:size]...)
		}
		text = text[size:]
	}
	c.rest = append(c.rest[:0], text...)
	if _, err := c.w.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sqlToken matches the tokens of a query: comments, quoted texts and names, words, and
// single characters.
var sqlToken = regexp.MustCompile(`(?s)--[^\n]*|#[ !][^\n]*|/\*.*?\*/|/\*|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|` + "`(?:[^`\\\\]|\\\\.)*`" + `|\w+|\S`)

// queryText is a statement and its place in the text that it is from.
type queryText struct {
	text         string
	line, column int // of its beginning, from 1
}

// placed returns the statement at its place among blanks, so that a position in ClickHouse's error is
// one in the whole text.
func (q queryText) placed() string {
	return strings.Repeat("\n", q.line-1) + strings.Repeat(" ", q.column-1) + q.text
}

// splitStatements returns the statements that end with a semicolon, and what follows the last one.
// Statements of comments alone are left out. A quote or comment that does not end is part of the
// rest, with everything after it.
func splitStatements(text string) (statements []queryText, rest queryText) {
	start, empty := 0, true
	cut := func(end int) queryText {
		piece := strings.TrimSpace(text[start:end])
		before := text[:start+strings.Index(text[start:end], piece)]
		return queryText{text: piece, line: 1 + strings.Count(before, "\n"), column: 1 + utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])}
	}
	for _, at := range sqlToken.FindAllStringIndex(text, -1) {
		switch token := text[at[0]:at[1]]; {
		case token == ";":
			if !empty {
				statements = append(statements, cut(at[0]))
			}
			start, empty = at[1], true
		case token == "'" || token == `"` || token == "`" || token == "/*":
			return statements, cut(len(text))
		case !strings.HasPrefix(token, "--") && !strings.HasPrefix(token, "/*") && (token[0] != '#' || len(token) == 1):
			empty = false
		}
	}
	if empty {
		return statements, queryText{}
	}
	return statements, cut(len(text))
}
