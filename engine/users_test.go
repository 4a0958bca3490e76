package engine_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestWrongPasswordIsRefused(t *testing.T) {
	u, err := url.Parse(enginetest.Engine(t).AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"admin", "service", "reader"} {
		u.User = url.UserPassword(user, "wrong")
		refused(t, connect(t, u.String()), "SELECT 1", authFailed)
	}
}

// The user of the library's own session has no password, and nobody else can log in as
// that user by any means.
func TestConnectionsWithoutAPasswordAreRefused(t *testing.T) {
	e := enginetest.Engine(t)
	u, err := url.Parse(e.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []*url.Userinfo{url.User("default"), url.UserPassword("default", "x"), nil} {
		u.User, u.Path = user, "/default"
		var exception *clickhouse.Exception
		if err := connect(t, u.String()).Ping(t.Context()); !errors.As(err, &exception) {
			t.Errorf("native, as %v: error %v", user, err)
		}
	}
	refused(t, connect(t, strings.Replace(u.String(), "clickhouse://", "clickhouse://default@", 1)), "SYSTEM STOP LISTEN HTTP", sessionLimit)
}

// The HTTP port refuses every request without a password: queries, pages and statements.
func TestHTTPAsksForAPassword(t *testing.T) {
	e := enginetest.Engine(t)
	for _, path := range []string{
		"/", "/ping", "/play", "/dashboard", "/binary", "/merges", "/js/uplot.js", "/replicas_status", "/metrics", "/x",
		"/?query=SELECT+1", "/?query=SELECT+1&user=default", "/?query=SELECT+1&user=default&password=", "/?query=SELECT+1&session_id=s",
		"/?query=SELECT+1&max_sessions_for_user=100", "/?query=SELECT+1&profile=default", "/?query=SELECT+1&user=reader", "/?query=SELECT+1&user=none",
	} {
		if code, text := ask(t, e, http.MethodGet, path, "", ""); code < 400 || !strings.Contains(text, "Exception") {
			t.Errorf("GET %s: %d %.100s", path, code, text)
		}
	}
	if code, text := ask(t, e, http.MethodPost, "/", "SYSTEM STOP LISTEN TCP", "default"); code < 400 {
		t.Errorf("POST: %d %.100s", code, text)
	}
	u, err := url.Parse(e.ReaderDSN())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	if code, text := ask(t, e, http.MethodPost, "/", "SELECT 6 * 7", "reader:"+password); code != http.StatusOK || text != "42\n" {
		t.Errorf("with a password: %d %s", code, text)
	}
}

// ask makes a request; login is "user:password", or empty for none.
func ask(t *testing.T, e *engine.Engine, method, path, body, login string) (code int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.HTTPAddr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if user, password, _ := strings.Cut(login, ":"); login != "" {
		request.SetBasicAuth(user, password)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

func TestServiceMayReadAndInsertOnly(t *testing.T) {
	e := enginetest.Engine(t)
	admin, service := connect(t, e.AdminDSN()), connect(t, e.ServiceDSN())
	exec(t, admin, "CREATE OR REPLACE TABLE evidence (v UInt64) ENGINE = MergeTree ORDER BY v")
	exec(t, service, "INSERT INTO evidence SELECT number FROM numbers(10)")
	for _, statement := range []string{
		"DELETE FROM evidence WHERE v = 1", "ALTER TABLE evidence DELETE WHERE v = 1",
		"ALTER TABLE evidence UPDATE v = 2 WHERE v = 1", "ALTER TABLE evidence ADD COLUMN w UInt8",
		"ALTER TABLE evidence DROP PARTITION tuple()", "ALTER TABLE evidence MODIFY TTL toDateTime(v)",
		"TRUNCATE TABLE evidence", "DROP TABLE evidence", "DETACH TABLE evidence", "RENAME TABLE evidence TO gone",
		"OPTIMIZE TABLE evidence FINAL", "CREATE TABLE more (v UInt8) ENGINE = Memory", "DROP DATABASE plumbline",
		"SELECT * FROM file('/etc/passwd', 'LineAsString')",
	} {
		refused(t, service, statement, accessDenied)
	}
	if n := count(t, service, "SELECT count() FROM evidence"); n != 10 {
		t.Errorf("%d rows of 10 are left", n)
	}
	if n := count(t, service, "SELECT count() FROM system.parts WHERE table = 'evidence' AND active"); n != 1 {
		t.Errorf("the service sees %d parts of its table", n)
	}
	if n := count(t, service, "SELECT count() FROM system.processes"); n == 0 {
		t.Error("the service cannot read its own query in system.processes")
	}
}

func TestReaderMayReadOnly(t *testing.T) {
	e := enginetest.Engine(t)
	admin, reader := connect(t, e.AdminDSN()), connect(t, e.ReaderDSN())
	exec(t, admin, "CREATE OR REPLACE TABLE readable (v UInt64) ENGINE = MergeTree ORDER BY v")
	exec(t, admin, "INSERT INTO readable VALUES (1)")
	if n := count(t, reader, "SELECT count() FROM readable"); n != 1 {
		t.Errorf("the reader sees %d rows of 1", n)
	}
	err := reader.Exec(t.Context(), "INSERT INTO readable SELECT 2")
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) {
		t.Errorf("the reader may insert: error %v", err)
	}
	refused(t, reader, "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')", accessDenied)
	if n := count(t, admin, "SELECT count() FROM readable"); n != 1 {
		t.Errorf("%d rows after the reader's insert", n)
	}
}

func TestBytesOfDeadLettersAreForTheOperator(t *testing.T) {
	e := enginetest.Engine(t)
	admin, reader, operator := connect(t, e.AdminDSN()), connect(t, e.ReaderDSN()), connect(t, e.OperatorDSN())
	exec(t, admin, "CREATE OR REPLACE TABLE dead_letters (stage String, raw String) ENGINE = MergeTree ORDER BY stage")
	exec(t, admin, "CREATE OR REPLACE VIEW letters AS SELECT * FROM dead_letters")
	exec(t, admin, "INSERT INTO dead_letters VALUES ('ingest', 'hunter2')")
	if n := count(t, operator, "SELECT count() FROM dead_letters WHERE raw = 'hunter2'"); n != 1 {
		t.Errorf("the operator sees %d letters of 1", n)
	}
	if n := count(t, reader, "SELECT count() FROM dead_letters WHERE stage = 'ingest'"); n != 1 {
		t.Errorf("the reader sees %d letters of 1", n)
	}
	for _, statement := range []string{
		"SELECT raw FROM dead_letters", "SELECT * FROM dead_letters", "SELECT substring(raw, 1, 1) FROM dead_letters",
		"SELECT 1 FROM dead_letters WHERE raw LIKE 'h%'", "SELECT stage FROM dead_letters ORDER BY raw", "SELECT raw FROM letters",
		"SELECT raw FROM merge('plumbline', 'letters')", "SELECT * FROM view(SELECT raw FROM dead_letters)",
		"SELECT raw FROM remote('127.0.0.1', plumbline.dead_letters)",
	} {
		refused(t, reader, statement, accessDenied)
	}
	err := operator.Exec(t.Context(), "INSERT INTO dead_letters SELECT '', ''")
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) {
		t.Errorf("the operator may insert: error %v", err)
	}
	exec(t, admin, "DROP VIEW letters")
	exec(t, admin, "DROP TABLE dead_letters")
}
