// Package queries_test runs every query of docs/QUERIES.md and compares its answer with values that
// are computed from the traces and cards alone, without the database.
//
// It owns the sites that the queries run on: the recorded corpus, if it is next to the checkout, and a
// small fleet that has every fault of the page. All stages process both. A second run of the queries
// follows after every row was stored again, because a copy must change no answer.
package queries_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/wire"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

// page is the document with the queries.
var page = filepath.Join("..", "..", "docs", "QUERIES.md")

// question is one question of the page.
type question struct {
	number int
	title  string
	query  string
}

var section = regexp.MustCompile("(?s)\n### (\\d+)\\. ([^\n]+)\n(.*?)```sql\n(.*?)```\n")

// questions reads the page.
func questions(t *testing.T) (all []question) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range section.FindAllStringSubmatch(string(text), -1) {
		number, err := strconv.Atoi(m[1])
		if err != nil || number != len(all)+1 {
			t.Fatalf("question %s follows question %d", m[1], len(all))
		}
		all = append(all, question{number: number, title: m[2], query: m[4]})
	}
	if len(all) != 32 || strings.Count(string(text), "\n### ") != len(all) || strings.Count(string(text), "```sql") != len(all) {
		t.Fatalf("the page has %d questions with one query each, want 32", len(all))
	}
	return all
}

// row is one row of an answer: the text of each column, by its name. NULL is "NULL".
type row map[string]string

func (r row) number(t *testing.T, column string) int {
	t.Helper()
	n, err := strconv.Atoi(r[column])
	if err != nil {
		t.Errorf("column %s: %v", column, err)
	}
	return n
}

// site is a fleet that has gone through all stages.
type site struct {
	*pipelinetest.Rig
	dir      string // of the exporter
	settings url.Values
}

// sqlSettings are those of plumbline sql that change the answers of other queries.
var sqlSettings = url.Values{"final": {"1"}, "join_use_nulls": {"1"}, "session_timezone": {"UTC"}}

// newSite processes records until all are stored, measured and, for the sessions to seal, sealed.
func newSite(t *testing.T, register [][]byte, revoke []string, records []stream.Record, stored int, seal []store.SessionKey) *site {
	t.Helper()
	s := &site{Rig: pipelinetest.New(t), dir: t.TempDir()}
	s.Register(t, register...)
	s.revoke(t, revoke)
	s.Publish(t, records...)
	for _, key := range seal {
		s.end(t, key)
	}
	judging, watching, sealing := verifier.Default(), drift.Default(), exporter.Default()
	watching.Mode = "first" // a few traces are enough for an alert
	judging.Common, judging.ClickHouse = s.Common(), s.ClickHouse()
	watching.Common, watching.ClickHouse, watching.Lateness = s.Common(), s.ClickHouse(), 10*time.Millisecond
	sealing.Common, sealing.ClickHouse, sealing.DataDir, sealing.Every = s.Common(), s.ClickHouse(), s.dir, 50*time.Millisecond
	stages := []*pipelinetest.Stage{
		pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &judging, pipelinetest.Env(t, "verifier")) }),
		pipelinetest.Go(t, func(ctx context.Context) error { return drift.Serve(ctx, &watching, pipelinetest.Env(t, "drift")) }),
		pipelinetest.Go(t, func(ctx context.Context) error { return exporter.Serve(ctx, &sealing, pipelinetest.Env(t, "exporter")) }),
	}
	pipelinetest.Await(t, "everything to be stored and sealed", func() bool {
		c, err := s.Store.Counts(t.Context())
		return err == nil && c.Traces >= uint64(stored) && c.DriftPoints >= uint64(stored) && c.Bundles >= uint64(len(seal)) &&
			c.DeadLetters >= uint64(len(records)-stored) && s.Number(t, "SELECT count() FROM visible_cards") >= uint64(len(register)) &&
			s.Number(t, "SELECT countIf(revoked_at IS NOT NULL) FROM visible_cards") >= uint64(len(revoke))
	})
	for _, stage := range stages {
		stage.Stop(t)
	}
	return s
}

// revoke revokes cards.
func (s *site) revoke(t *testing.T, cardIDs []string) {
	t.Helper()
	registry, err := cards.Open(t.Context(), s.Client, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range cardIDs {
		card, err := registry.Lookup(t.Context(), id)
		if err == nil {
			_, _, err = registry.Revoke(t.Context(), card.Entry, "lost", time.Now())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// end requests that a session is sealed with everything published so far.
func (s *site) end(t *testing.T, key store.SessionKey) {
	t.Helper()
	state, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	request := wire.EndRequest{AgentID: key.AgentID, SessionID: key.SessionID, ThroughSequence: state.LastSequence}
	if err := s.Client.RequestEnd(t.Context(), subject.Partition(key.AgentID), request); err != nil {
		t.Fatal(err)
	}
}

// copyRows stores every row again, as after a crash between an insert and its acknowledgement.
func (s *site) copyRows(t *testing.T) {
	t.Helper()
	for _, table := range database.Tables {
		s.Exec(t, "SYSTEM STOP MERGES %s", table)
		s.Exec(t, "INSERT INTO %s SELECT * FROM %[1]s", table)
	}
}

// ask runs a query over the engine's HTTP interface and returns its rows and how long it took.
func (s *site) ask(t *testing.T, query string, parameters map[string]string) (rows []row, took time.Duration) {
	t.Helper()
	at, err := url.Parse(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	values := url.Values{"database": {strings.TrimPrefix(at.Path, "/")}, "default_format": {"JSONCompactStrings"}, "distributed_product_mode": {"global"}}
	for name, value := range parameters {
		values.Set("param_"+name, value)
	}
	maps.Copy(values, s.settings)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+httpAddress(t)+"/?"+values.Encode(), strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	request.SetBasicAuth(at.User.Username(), password)
	began := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	took = time.Since(began)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s\n%s %s %v", query, answer.Status, text, err)
	}
	var table struct {
		Meta []struct{ Name string }
		Data [][]string
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatalf("%s\n%s", err, text)
	}
	for _, cells := range table.Data {
		r := row{}
		for i, cell := range cells {
			r[table.Meta[i].Name] = strings.Replace(cell, "ᴺᵁᴸᴸ", "NULL", 1)
		}
		rows = append(rows, r)
	}
	return rows, took
}

// httpAddress returns the address of the server that DSN names.
func httpAddress(t *testing.T) string {
	if enginetest.Sharded() {
		return enginetest.Shards(t)[0].HTTPAddr()
	}
	return enginetest.Engine(t).HTTPAddr()
}

// key joins columns of a row.
func (r row) key(columns ...string) string {
	parts := make([]string, len(columns))
	for i, column := range columns {
		value, found := r[column]
		if !found {
			panic(fmt.Sprintf("the answer has no column %s: %v", column, r))
		}
		parts[i] = value
	}
	return strings.Join(parts, " ")
}
