package store

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/database"
)

// eachSQL calls check with each file of SQL: the queries, and the definitions of the tables.
func eachSQL(t *testing.T, check func(name, text string)) {
	t.Helper()
	for _, files := range []fs.FS{querySQL, database.Migrations()} {
		err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(files, path)
			check(path, string(b))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A FixedString is written with hex: as text it would lose the NUL bytes at its end.
func TestNoFixedStringIsTakenForText(t *testing.T) {
	cut := regexp.MustCompile(`(?i)(toString\(|CAST\()\s*(\w+\.)?(\w*digest|sha256|\w+_id)\b|(\w*digest|sha256)\s*::`)
	eachSQL(t, func(name, text string) {
		if found := cut.FindString(text); found != "" {
			t.Errorf("%s: %s… cuts NUL bytes off the end of a FixedString", name, found)
		}
	})
}

// No query removes or changes a row, or gives one another time to live.
func TestQueriesOnlyRead(t *testing.T) {
	forbidden := regexp.MustCompile(`\b(DELETE|TRUNCATE|DROP|UPDATE|TTL)\b`)
	err := fs.WalkDir(querySQL, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(querySQL, path)
		if word := forbidden.FindString(strings.ToUpper(string(text))); word != "" {
			t.Errorf("%s contains %s: rows are only ever added", path, word)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The column verdict_id is the verdict's id, also if a digest ends in NUL.
func TestStoredVerdictsHaveTheirID(t *testing.T) {
	s, _ := open(t)
	trace := numbered(t, 1)
	clear(trace.Digest[31:])
	v := wholeVerdict(trace)
	b := s.NewTraceBatch()
	b.Add(trace, meta(trace, 1), v)
	insert(t, s, b)
	want := VerdictID(&v.Metadata).String()
	for _, table := range []string{"verdicts", "current_verdicts"} {
		if got := one[string](t, s, "SELECT verdict_id FROM "+table); got != want {
			t.Errorf("verdict_id of %s is %s, want %s", table, got, want)
		}
	}
}
