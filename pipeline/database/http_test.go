package database

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestHTTPAddress(t *testing.T) {
	for _, c := range []struct {
		given, native string
		secure        bool
		want          string
	}{
		{"", "db.example:9000", false, "http://db.example:8123/"},
		{"", "db.example:9440", true, "https://db.example:8443/"},
		{"", "[::1]:9000", false, "http://[::1]:8123/"},
		{"http://127.0.0.1:1234", "db.example:9000", false, "http://127.0.0.1:1234/"},
		{"https://db.example/clickhouse/", "db.example:9000", false, "https://db.example/clickhouse/"},
		{"db.example:8123", "db.example:9000", false, "no address of ClickHouse's HTTP interface"},
		{"clickhouse://db.example", "db.example:9000", false, "no address of ClickHouse's HTTP interface"},
		{"http://user:secret@db.example", "db.example:9000", false, "remove them"},
	} {
		at, err := httpAddress(c.given, c.native, c.secure)
		got := at.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) || strings.Contains(got, "secret") {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

// A result that looks like the server's report of a failure is a result.
func TestBrokenOffResult(t *testing.T) {
	const report = "\r\n__exception__\r\nabc\r\nCode: 1. Why\n12 abc\r\n__exception__\r\n"
	for _, c := range []struct{ tail, tag, result, failure string }{
		{"1\n2\n", "abc", "1\n2\n", ""},
		{"1\n" + report, "abc", "1\n", "Code: 1. Why"},
		{"1\n" + report, "xyz", "1\n" + report, ""},
		{"1\n" + report, "", "1\n" + report, ""},
	} {
		result, failure := brokenOff([]byte(c.tail), c.tag)
		if string(result) != c.result || string(failure) != c.failure {
			t.Errorf("%+v: got %q, %q", c, result, failure)
		}
	}
}

// openHTTP returns the HTTP interface of the engine, for one of its users.
func openHTTP(t *testing.T, dsn string) *HTTP {
	t.Helper()
	h, err := OpenHTTP(Config{DSN: dsn, Stage: "test"}, "http://"+enginetest.Engine(t).HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// Copies of rows are hidden, settings stay, parameters are bound, and the format is ClickHouse's.
func TestStatementsOverHTTP(t *testing.T) {
	d := openDSN(t, enginetest.Migrated(t, Migrate))
	exec(t, d, "SYSTEM STOP MERGES sessions")
	for range 2 {
		exec(t, d, "INSERT INTO sessions (tenant, agent_id, session_id, version) VALUES ('default', 'a', 's', 1)")
	}
	h := openHTTP(t, d.Config().DSN)
	for _, c := range []struct {
		s    Statement
		want string
	}{
		{Statement{Text: "SELECT count() AS n FROM sessions", Format: "TSVWithNames"}, "n\n1\n"},
		{Statement{Text: "SELECT count() FROM sessions SETTINGS final = 0", Format: "TSV"}, "2\n"},
		{Statement{Text: "SET max_threads = 3"}, ""},
		{Statement{Text: "SELECT getSetting('max_threads')"}, "3\n"},
		{Statement{Text: "SELECT {a:String} FORMAT CSV", Format: "TSV", Parameters: map[string]string{"a": "x'y"}}, "\"x'y\"\n"},
		{Statement{Text: "SELECT {a:String}, {l:Array(String)} FORMAT JSONCompactEachRow", Parameters: map[string]string{"a": "C:\\temp\tx\n\\N", "l": `['a\'b','c\\d']`}}, `["C:\\temp\tx\n\\N", ["a'b","c\\d"]]` + "\n"},
		{Statement{Text: "SELECT timezone(), b FROM (SELECT 1 AS a) AS l LEFT JOIN (SELECT 2 AS a, 'x' AS b) AS r ON l.a = r.a", Format: "TSV"}, "UTC\t\\N\n"},
		{Statement{Text: "SELECT 'é' AS a, [toDate('2026-01-02')] AS l", Format: "JSONEachRow"}, `{"a":"é","l":["2026-01-02"]}` + "\n"},
	} {
		var out bytes.Buffer
		if err := h.Run(t.Context(), c.s, &out); err != nil || out.String() != c.want {
			t.Errorf("%s: got %q, error %v, want %q", c.s.Text, out.String(), err, c.want)
		}
	}
	long := bytes.Repeat([]byte("0123456789\n"), 50_000)
	var out bytes.Buffer
	err := h.Run(t.Context(), Statement{Text: "SELECT '0123456789', throwIf(number >= 50000, 'too far') FROM numbers(60000) SETTINGS max_block_size = 1000"}, &out)
	if exception, failed := errors.AsType[*Exception](err); !failed || !strings.Contains(exception.Text, "too far") || strings.Contains(exception.Text, "__exception__") {
		t.Errorf("error %v", err)
	}
	if got := bytes.ReplaceAll(out.Bytes(), []byte("\t0\n"), []byte("\n")); !bytes.HasPrefix(long, got) || bytes.Contains(got, []byte("exception")) {
		t.Errorf("%d bytes that are not the begin of the result end with %q", len(got), got[max(0, len(got)-200):])
	}
}

// With a tenant, statements read the rows of this tenant only: of tables, through views, and on shards.
func TestOnlyTenant(t *testing.T) {
	d, dsn := open(t)
	at := enginetest.Engine(t).HTTPAddr()
	if onShards {
		at = enginetest.Shards(t)[0].HTTPAddr()
	}
	for _, tenant := range []string{"one", "other", "other"} {
		exec(t, d, "INSERT INTO traces (tenant, agent_id, trace_id, digest, retain_until) SETTINGS insert_distributed_sync = 1 SELECT '"+tenant+"', toString(number), 't', SHA256('t'), now() + 1000000 FROM numbers(10)")
	}
	h, err := OpenHTTP(Config{DSN: dsn, Stage: "test"}, "http://"+at)
	if err == nil {
		t.Cleanup(h.Close)
		err = h.OnlyTenant("other")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"tenant FROM traces", "tenant FROM visible_traces", "tenant FROM session_summary", "tenant FROM agents_daily"} {
		var out bytes.Buffer
		if err := h.Run(t.Context(), Statement{Text: "SELECT count(), any(tenant), uniqExact(tenant) FROM (SELECT " + query + ")", Format: "TSV"}, &out); err != nil || out.String() != "10\tother\t1\n" {
			t.Errorf("%s: %q, %v", query, out.String(), err)
		}
	}
	if err := h.OnlyTenant("it's"); err == nil {
		t.Error("a tenant's name with a quote was taken")
	}
}

// A statement whose context ends has ended on the server when Run returns: a reader's, who has no right
// to KILL, and an administrator's. The statement writes nothing, so the server does not notice by itself.
func TestCancelledStatementEndsOnTheServer(t *testing.T) {
	e := enginetest.Engine(t)
	if err := Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	d := openDSN(t, e.AdminDSN())
	const text = "SELECT sum(sleepEachRow(0.5)) FROM numbers(1000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0"
	const running = "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(sleepEachRow(0.5))%'"
	for user, dsn := range map[string]string{"reader": e.ReaderDSN(), "admin": e.AdminDSN()} {
		h := openHTTP(t, dsn)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx, Statement{Text: text}, new(bytes.Buffer)) }()
		for one[uint64](t, d, running) == 0 {
			if t.Context().Err() != nil {
				return
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "may still run") {
			t.Errorf("%s: %v", user, err)
		}
		if n := one[uint64](t, d, running); n != 0 {
			t.Errorf("%s: the statement still runs", user)
		}
	}
}

// A password is in no address, and in no error.
func TestErrorsOfHTTPHaveNoPassword(t *testing.T) {
	h, err := OpenHTTP(Config{DSN: "clickhouse://user:secret@127.0.0.1:9000/plumbline"}, "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	err = h.Run(t.Context(), Statement{Text: "SELECT 1"}, new(bytes.Buffer))
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "http://127.0.0.1:1/") {
		t.Errorf("error %v", err)
	}
}
