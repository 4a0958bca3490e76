package database

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

// describedColumn is a column of the database as ClickHouse describes it.
type describedColumn struct {
	Table   string `ch:"table"`
	Name    string `ch:"name"`
	Type    string `ch:"type"`
	Comment string `ch:"comment"`
}

// described returns all columns of a database, and the comments of its tables and views.
func described(t *testing.T, d *DB) (columns []describedColumn, tables map[string]string) {
	t.Helper()
	if err := d.Select(t.Context(), &columns, "SELECT table, name, type, comment FROM system.columns WHERE database = currentDatabase() ORDER BY table, position"); err != nil {
		t.Fatal(err)
	}
	var names []describedColumn
	if err := d.Select(t.Context(), &names, "SELECT t.name AS table, '' AS name, t.engine AS type, t.comment AS comment FROM system.tables AS t WHERE database = currentDatabase()"); err != nil {
		t.Fatal(err)
	}
	tables = map[string]string{}
	for _, table := range names {
		tables[table.Table] = table.Comment
	}
	return columns, tables
}

// Every table, every view and each of their columns has a comment, and no comment is about something
// that does not exist.
func TestEveryColumnHasAComment(t *testing.T) {
	d, _ := open(t)
	columns, tables := described(t, d)
	for name, comment := range tables {
		if comment == "" {
			t.Errorf("%s has no comment", name)
		}
	}
	exists := map[string]bool{}
	for _, c := range columns {
		if c.Comment == "" {
			t.Errorf("column %s of %s has no comment", c.Name, c.Table)
		}
		exists[c.Table+" "+c.Name] = true
	}
	all, err := parseComments(commentText)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range all[1:] {
		if _, found := tables[of.name]; !found {
			t.Errorf("comments.txt is about %s, which does not exist", of.name)
		}
		for column := range of.columns {
			if !exists[of.name+" "+column] {
				t.Errorf("comments.txt is about column %s of %s, which does not exist", column, of.name)
			}
		}
	}
}

// A comment that somebody changed is written again; nothing else is.
func TestChangedCommentsAreWrittenAgain(t *testing.T) {
	d, dsn := open(t)
	before := one[string](t, d, describe)
	exec(t, d, "ALTER TABLE "+local("traces")+" COMMENT COLUMN agent_id 'nobody', MODIFY COMMENT ''")
	exec(t, d, "ALTER TABLE problems COMMENT COLUMN severity ''")
	exec(t, d, "CREATE TABLE theirs (a UInt8) ENGINE = Memory")
	over := Cluster{}
	if onShards {
		over = onTestShards
	}
	if err := over.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	exec(t, d, "DROP TABLE theirs")
	if after := one[string](t, d, describe); after != before {
		t.Errorf("the tables were\n%s\nand are\n%s", before, after)
	}
}

// A user who may not alter tables can run migrate, and leaves the comments as they are.
func TestServiceLeavesComments(t *testing.T) {
	if onShards {
		t.Skip("on shards, TestServiceHasNothingToMigrate")
	}
	e := enginetest.Engine(t)
	if err := Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	d := openDSN(t, e.AdminDSN())
	exec(t, d, "ALTER TABLE problems COMMENT COLUMN severity 'changed'")
	if err := Migrate(t.Context(), e.ServiceDSN()); err != nil {
		t.Error(err)
	}
	if comment := one[string](t, d, "SELECT comment FROM system.columns WHERE database = currentDatabase() AND table = 'problems' AND name = 'severity'"); comment != "changed" {
		t.Errorf("the comment is %q", comment)
	}
}

func TestFaultsOfComments(t *testing.T) {
	for _, text := range []string{"a = b", "[t]\nno comment", "[t]\n= a\n= b", "[t]\na = b\na = c"} {
		if all, err := parseComments(text); err == nil {
			t.Errorf("%q was read as %v", text, all)
		}
	}
}

// docs/COLUMNS.md, and the list of views in docs/SCHEMA.md, are what the database says.
func TestDocumentsOfTheTables(t *testing.T) {
	if onShards {
		t.Skip("the documents are about one server")
	}
	d, _ := open(t)
	columns, tables := described(t, d)
	all, err := parseComments(commentText)
	if err != nil {
		t.Fatal(err)
	}
	views := slices.DeleteFunc(slices.Clone(all[1:]), func(of commented) bool { return slices.Contains(Tables, of.name) || of.name == versionTable })
	holds := slices.DeleteFunc(slices.Clone(all[1:]), func(of commented) bool { return !slices.Contains(Tables, of.name) })
	var list, pages strings.Builder
	pages.WriteString(columnsHead)
	for i, kind := range [][]commented{views, holds} {
		pages.WriteString([]string{"\n## Views\n", "\n## Tables\n"}[i])
		for _, of := range kind {
			fmt.Fprintf(&pages, "\n### %s\n\n%s\n\n| column | type | |\n|---|---|---|\n", of.name, tables[of.name])
			for _, c := range columns {
				if c.Table == of.name {
					fmt.Fprintf(&pages, "| `%s` | %s | %s |\n", c.Name, strings.ReplaceAll(c.Type, "|", `\|`), strings.ReplaceAll(c.Comment, "|", `\|`))
				}
			}
		}
	}
	for _, of := range views {
		fmt.Fprintf(&list, "| `%s` | %s |\n", of.name, tables[of.name])
	}
	compare(t, "COLUMNS.md", func(string) string { return pages.String() })
	compare(t, "SCHEMA.md", func(text string) string {
		const head = "| view | a row is |\n|---|---|\n"
		before, rest, found := strings.Cut(text, head)
		_, after, ends := strings.Cut(rest, "\n\n")
		if !found || !ends {
			t.Fatal("docs/SCHEMA.md has no table of views")
		}
		return before + head + list.String() + "\n" + after
	})
}

const columnsHead = `# Every column

The views and tables of the database with the comments of their columns. ClickHouse has the same comments: ` + "`\\d NAME`" + ` in ` + "`plumbline sql`" + `,
` + "`DESCRIBE TABLE NAME`" + `, ` + "`system.columns`" + `. Read the views; [SCHEMA.md](SCHEMA.md) gives the reasons, and [QUERIES.md](QUERIES.md) has queries to begin with.

This page is written from ` + "`pipeline/database/sql/comments.txt`" + `, as are the comments in the database:

    go test ./pipeline/database -run '^TestDocumentsOfTheTables$' -update
`

// compare requires that a document is what change makes of it. With -update it changes the document.
func compare(t *testing.T, name string, change func(text string) string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", name)
	text, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := change(string(text))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("docs/%s is not what the database says: run the test with -update, and read what changed", name)
	}
}
