package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/peterh/liner"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// sqlPrompt reads queries from a terminal and prints their results.
type sqlPrompt struct {
	server    *database.HTTP
	statement database.Statement // without its text
	editor    *liner.State
	signals   chan os.Signal
}

const promptHelp = `A query ends with a semicolon and may have several lines.
  \d          the tables and views, with their comments
  \d NAME     the columns of a table or view, with their comments
  \q          end; also exit, quit and Ctrl-D
  \?          this help
A parameter {agent:String} has the value of SET param_agent = '…'. For wide rows, end a query with FORMAT Vertical. Tab completes the name of a table, view or column.
Ctrl-C stops a query on the server, or drops what you have typed. docs/QUERIES.md has thirty-two queries to begin with.`

// The answers to \d and \d NAME. The views come first: they show each row once.
const (
	listTables = `SELECT name, if(engine = 'View', 'view', 'table') AS kind, comment FROM system.tables
WHERE database = currentDatabase() AND NOT endsWith(name, '_local') ORDER BY kind DESC, name`
	listNames = `SELECT DISTINCT name FROM (
    SELECT name FROM system.tables WHERE database = currentDatabase() AND NOT endsWith(name, '_local')
    UNION ALL SELECT name FROM system.columns WHERE database = currentDatabase())
WHERE match(name, '^\\w+$') ORDER BY name`
	listColumns = `SELECT name, type, comment FROM system.columns WHERE database = currentDatabase() AND table = {name:String} ORDER BY position`
)

// run reads and runs queries until the user ends it.
func (p *sqlPrompt) run(ctx context.Context, con *console) error {
	p.signals = make(chan os.Signal, 1)
	signal.Notify(p.signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(p.signals)
	ctx = context.WithoutCancel(ctx) // the first Ctrl-C ends the command's context, and shall end only a query
	p.editor = liner.NewLiner()
	p.editor.SetCtrlCAborts(true)
	p.editor.SetMultiLineMode(true)
	history, err := p.loadHistory()
	if err != nil {
		fmt.Fprintln(con.errs, "plumbline: the history is not kept:", errorText(err))
	}
	names, err := p.names(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("read the names of tables and columns: %w", err), p.editor.Close())
	}
	p.editor.SetWordCompleter(func(line string, at int) (string, []string, string) { return completed(names, line, at) })
	fmt.Fprintln(con.errs, `Type \? for help, \d for the tables.`)
	err = p.loop(ctx, con)
	return errors.Join(err, p.saveHistory(history), p.editor.Close())
}

// names returns the names of all tables, views and their columns.
func (p *sqlPrompt) names(ctx context.Context) ([]string, error) {
	var text strings.Builder
	if err := p.server.Run(ctx, database.Statement{Text: listNames, Format: "TSVRaw"}, &text); err != nil {
		return nil, err
	}
	return strings.Fields(text.String()), nil
}

// keywords are words of SQL that a query may be pasted with a tab behind. SELECT is not the begin of the
// column "selected".
var keywords = strings.Fields(`all and any array as asc between by case desc distinct else end final format from global group having in inner is join
	left like limit not null on or order outer over partition right select settings then union using when where with`)

// completed returns the names that the word before the cursor may become, and the line before and after
// the word. If there is none, a tab becomes a blank: the tabs of a query that is pasted divide words.
func completed(names []string, line string, at int) (head string, words []string, tail string) {
	begun := []rune(line)[:at]
	tail = string([]rune(line)[at:])
	from := len(begun)
	for from > 0 && (begun[from-1] == '_' || unicode.IsLetter(begun[from-1]) || unicode.IsDigit(begun[from-1])) {
		from--
	}
	word := string(begun[from:])
	for _, name := range names {
		if word != "" && len(name) > len(word) && strings.EqualFold(name[:len(word)], word) {
			words = append(words, name)
		}
	}
	if len(words) == 0 || slices.Contains(names, word) || slices.Contains(keywords, strings.ToLower(word)) {
		words = []string{word + " "}
	}
	return string(begun[:from]), words, tail
}

// loop returns nil when the user ends the input.
func (p *sqlPrompt) loop(ctx context.Context, con *console) error {
	typed := ""
	for {
		mark := "plumbline> "
		if typed != "" {
			mark = "        -> "
		}
		line, err := p.editor.Prompt(mark)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			typed = ""
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(con.errs)
			return nil
		case err != nil:
			return fmt.Errorf("read from the terminal: %w", err)
		}
		if command := strings.TrimSpace(line); typed == "" && strings.HasPrefix(command, `\`) {
			p.editor.AppendHistory(command)
			if !p.command(ctx, con, command) {
				return nil
			}
			continue
		}
		if typed != "" {
			typed += "\n"
		}
		typed += line
		statements, rest := splitStatements(typed)
		for _, statement := range statements {
			if !strings.Contains(statement.text, "--") { // in one line, a comment would not end
				p.editor.AppendHistory(strings.Join(strings.Split(statement.text, "\n"), " ") + ";")
			}
			if !p.runOne(ctx, con, statement.placed(), nil, resultWriter(con.out)) {
				break
			}
		}
		typed = rest.text
		switch strings.ToLower(typed) {
		case "help":
			typed = ""
			fmt.Fprintln(con.errs, promptHelp)
		case "exit", "quit":
			return nil
		}
	}
}

// command runs a command that begins with a backslash. It returns false if the command ends the
// prompt.
func (p *sqlPrompt) command(ctx context.Context, con *console, command string) bool {
	name, argument, _ := strings.Cut(strings.TrimRight(command, "; "), " ")
	argument = strings.TrimSpace(argument)
	switch {
	case name == `\q`:
		return false
	case name == `\d` && argument == "":
		p.runOne(ctx, con, listTables, nil, resultWriter(con.out))
	case name == `\d`:
		shown := &countingWriter{w: resultWriter(con.out)}
		if p.runOne(ctx, con, listColumns, map[string]string{"name": argument}, shown) && shown.n == 0 {
			fmt.Fprintf(con.errs, "plumbline: no table or view has the name %q; \\d lists all\n", argument)
		}
	default:
		fmt.Fprintln(con.errs, promptHelp)
	}
	return true
}

// countingWriter counts what it writes.
type countingWriter struct {
	w io.Writer
	n int
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += len(p)
	return c.w.Write(p)
}

// runOne runs one statement and reports whether it succeeded. A signal ends it on the server.
func (p *sqlPrompt) runOne(ctx context.Context, con *console, text string, parameters map[string]string, out io.Writer) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer func() { <-ended }()
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(ended)
		select {
		case <-p.signals:
			cancel()
		case <-done:
		}
	}()
	s := p.statement
	s.Text = text
	if parameters != nil {
		s.Parameters = parameters
	}
	err := p.server.Run(ctx, s, out)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(con.errs, "plumbline: stopped")
	case err != nil:
		fmt.Fprintf(con.errs, "plumbline: %s\n", errorText(err))
	}
	return err == nil
}

// historyName is the file of the history in the user's state directory.
const historyName = "sql_history"

// loadHistory reads what was typed before, and returns the path of the file.
func (p *sqlPrompt) loadHistory() (path string, err error) {
	dir, err := machine.StateDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, historyName)
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", err
	}
	_, err = p.editor.ReadHistory(file)
	return path, errors.Join(err, file.Close())
}

// saveHistory writes what was typed, readable by the user alone.
func (p *sqlPrompt) saveHistory(path string) error {
	if path == "" {
		return nil
	}
	var text strings.Builder
	if _, err := p.editor.WriteHistory(&text); err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(path, []byte(text.String()), 0o600)
}
