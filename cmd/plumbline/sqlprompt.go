package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

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
  \q          end; also Ctrl-D
  \?          this help
Ctrl-C stops a query on the server, or drops what you have typed. docs/QUERIES.md has thirty queries to begin with.`

// The answers to \d and \d NAME. The views come first: they show each row once.
const (
	listTables = `SELECT name, if(engine = 'View', 'view', 'table') AS kind, comment FROM system.tables
WHERE database = currentDatabase() AND NOT endsWith(name, '_local') ORDER BY kind DESC, name`
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
	fmt.Fprintln(con.errs, `Type \? for help, \d for the tables.`)
	err = p.loop(ctx, con)
	return errors.Join(err, p.saveHistory(history), p.editor.Close())
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
			if !strings.Contains(statement, "--") { // in one line, a comment would not end
				p.editor.AppendHistory(strings.Join(strings.Split(statement, "\n"), " ") + ";")
			}
			if !p.runOne(ctx, con, statement, nil) {
				break
			}
		}
		if typed = rest; len(statements) == 0 && strings.EqualFold(rest, "help") {
			typed = ""
			fmt.Fprintln(con.errs, promptHelp)
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
		p.runOne(ctx, con, listTables, nil)
	case name == `\d`:
		p.runOne(ctx, con, listColumns, map[string]string{"name": argument})
	default:
		fmt.Fprintln(con.errs, promptHelp)
	}
	return true
}

// runOne runs one statement and reports whether it succeeded. A signal ends it on the server.
func (p *sqlPrompt) runOne(ctx context.Context, con *console, text string, parameters map[string]string) bool {
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
	err := p.server.Run(ctx, s, resultWriter(con.out))
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
