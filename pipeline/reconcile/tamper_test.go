package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/tlog"
	"github.com/plumbline/plumbline/schema"
)

// copyRow inserts a copy of a row with some columns changed.
const copyRow = "INSERT INTO traces (event_hour, tenant, agent_id, trace_id, digest, received_at, retain_until, stream_created, stream_sequence, stream_partition," +
	" event_time, card_id, session_id, session_end, action_type, action_name, action_category, raw)" +
	" SELECT event_hour, tenant, agent_id, %s, %s, %s, retain_until, stream_created, %s, stream_partition," +
	" event_time, card_id, session_id, session_end, action_type, action_name, action_category, %s FROM traces FINAL WHERE trace_id = '%s'"

// damage is a change to a site that has finished all work.
type damage struct {
	name string
	do   func(t *testing.T, s *site)
	// want holds the differences that must be reported: kinds with a text that their lines
	// contain. No other kind may be reported.
	want map[reconcile.Kind]string
}

func statement(format string, args ...any) func(t *testing.T, s *site) {
	return func(t *testing.T, s *site) { s.exec(t, format, args...) }
}

var damages = []damage{
	{"the bytes of a row changed by a newer version of it",
		statement(copyRow, "trace_id", "digest", "received_at - INTERVAL 1 SECOND", "stream_sequence", "replaceOne(raw, 'search', 'delete')", "x-2"),
		map[reconcile.Kind]string{reconcile.RowChanged: `session "x" trace "x-2" sequence 2: the stored bytes are`}},
	{"a row of another trace in the place of one",
		statement("ALTER TABLE traces UPDATE raw = replaceOne(raw, 'search', 'delete') WHERE trace_id = 'x-2'"),
		map[reconcile.Kind]string{reconcile.RowChanged: `trace "x-2"`}},
	{"a row that nobody published",
		statement(copyRow, "'forged'", "CAST(SHA256(replaceOne(raw, 'open-1', 'forged')), 'FixedString(32)')", "received_at", "1000", "replaceOne(raw, 'open-1', 'forged')", "open-1"),
		map[reconcile.Kind]string{reconcile.RowForeign: `session "open" trace "forged" sequence 1000: the stream has no such message`}},
	{"a row that nobody published, in the place of another",
		statement(copyRow, "'forged'", "CAST(SHA256(replaceOne(raw, 'open-1', 'forged')), 'FixedString(32)')", "received_at", "stream_sequence", "replaceOne(raw, 'open-1', 'forged')", "open-1"),
		map[reconcile.Kind]string{reconcile.RowForeign: `trace "forged" sequence 3`}},
	{"a row of a stream of the future",
		statement("ALTER TABLE traces UPDATE stream_created = stream_created + INTERVAL 1 DAY WHERE trace_id = 'open-1'"),
		map[reconcile.Kind]string{reconcile.RowForeign: `trace "open-1"`, reconcile.ColumnsChanged: `trace "open-1"`}},
	{"a row moved to another session",
		statement("ALTER TABLE traces UPDATE session_id = 'elsewhere' WHERE trace_id = 'open-1'"),
		map[reconcile.Kind]string{reconcile.ColumnsChanged: `session "open" trace "open-1" sequence 3: the columns (agent "a", session "elsewhere"`}},
	{"a row with another partition",
		statement("ALTER TABLE traces UPDATE stream_partition = stream_partition + 1 WHERE trace_id = 'open-1'"),
		map[reconcile.Kind]string{reconcile.ColumnsChanged: `trace "open-1" sequence 3: the row was received`}},
	{"a row removed",
		statement("ALTER TABLE traces DELETE WHERE trace_id = 'x-3'"),
		map[reconcile.Kind]string{reconcile.RowMissing: `agent "a" session "x" trace "x-3" sequence 5: the message has neither a row nor a dead letter`}},
	{"a verdict removed",
		statement("ALTER TABLE verdicts DELETE WHERE trace_id = 'y-2'"),
		map[reconcile.Kind]string{reconcile.VerdictMissing: `session "y" trace "y-2" sequence 7`}},
	{"a drift point removed",
		statement("ALTER TABLE drift_points DELETE WHERE trace_id = 'y-2'"),
		map[reconcile.Kind]string{reconcile.PointMissing: `session "y" trace "y-2" sequence 7: drift is done with the trace`}},
	{"a drift point of a trace that nobody published",
		statement("INSERT INTO drift_points SELECT * REPLACE('forged' AS trace_id, unhex(repeat('ab', 32)) AS trace_digest, 1000 AS stream_sequence) FROM kept_drift_points WHERE kept_drift_points.trace_id = 'y-2'"),
		map[reconcile.Kind]string{reconcile.PointForeign: `trace "forged" sequence 1000: the stream has no such message`}},
	{"a drift point forged at the place of another trace",
		statement("INSERT INTO drift_points SELECT * REPLACE('forged' AS trace_id, unhex(repeat('ab', 32)) AS trace_digest) FROM kept_drift_points WHERE kept_drift_points.trace_id = 'y-2'"),
		map[reconcile.Kind]string{reconcile.PointForeign: `trace "forged" sequence 7: the message at this place is trace "y-2" of agent "a"`}},
	{"a drift point at the place of a dead letter",
		statement("INSERT INTO drift_points SELECT * REPLACE(unhex(repeat('ab', 32)) AS trace_digest, 12 AS stream_sequence) FROM kept_drift_points WHERE kept_drift_points.trace_id = 'y-2'"),
		map[reconcile.Kind]string{reconcile.PointForeign: `sequence 12: its message is not a valid trace`}},
	{"a dead letter removed",
		statement("ALTER TABLE dead_letters DELETE WHERE 1"),
		map[reconcile.Kind]string{reconcile.DeadLetterMissing: `agent "a" sequence 12`}},
	{"the bytes of a dead letter changed",
		statement("ALTER TABLE dead_letters UPDATE raw = '{}' WHERE 1"),
		map[reconcile.Kind]string{reconcile.DeadLetterChanged: `sequence 12`}},
	{"a dead letter of a stored trace",
		statement("INSERT INTO dead_letters (event_hour, tenant, stage, origin_created, origin_sequence, digest, received_at, reason, raw)" +
			" SELECT event_hour, tenant, 'verifier', toDateTime64(0, 9, 'UTC'), stream_sequence, digest, received_at, 'invalid_trace', raw FROM traces FINAL WHERE trace_id = 'open-1'"),
		map[reconcile.Kind]string{reconcile.DeadLetterAndRow: `trace "open-1" sequence 3`}},

	{"a bundle removed", func(t *testing.T, s *site) { s.remove(t, s.bundle(t, "y", 1)) },
		map[reconcile.Kind]string{reconcile.BundleMissing: `session "y"`, reconcile.LogBundleMissing: `session "y"`}},
	{"the first of two parts removed", func(t *testing.T, s *site) { s.remove(t, s.bundle(t, "x", 1)) },
		map[reconcile.Kind]string{reconcile.BundleMissing: `session "x"`, reconcile.BundleLink: "part 1 is missing", reconcile.LogBundleMissing: `session "x"`}},
	{"a byte of a bundle changed", func(t *testing.T, s *site) { s.flip(t, s.bundle(t, "y", 1), 300) },
		map[reconcile.Kind]string{reconcile.BundleBad: `does not verify`, reconcile.BundleChanged: `session "y"`, reconcile.LogBundleMissing: `session "y"`}},
	{"a bundle that nobody sealed", func(t *testing.T, s *site) {
		s.write(t, filepath.Join(s.path("bundles"), "somebody", "aivs_proof_nobody_1.tar.gz"), []byte("no bundle"))
	}, map[reconcile.Kind]string{reconcile.BundleBad: `somebody`, reconcile.BundleUnrecorded: `file "somebody/aivs_proof_nobody_1.tar.gz"`}},
	{"a copy of a bundle under another name", func(t *testing.T, s *site) {
		s.write(t, filepath.Join(s.path("bundles"), "copy.tar.gz"), s.read(t, s.bundle(t, "y", 1)))
	}, map[reconcile.Kind]string{reconcile.BundleUnrecorded: `session "y" file "copy.tar.gz"`, reconcile.ProofMissing: "copy.tar.gz"}},
	{"a bundle in the place of another", func(t *testing.T, s *site) {
		s.write(t, s.bundle(t, "y", 1), s.read(t, s.bundle(t, "x", 1)))
	}, map[reconcile.Kind]string{reconcile.BundleChanged: `session "y"`, reconcile.LogBundleMissing: `session "y"`, reconcile.ProofBad: "does not hold this bundle"}},
	{"a bundle row forged", statement("INSERT INTO bundles SELECT * REPLACE(3 AS part, unhex(repeat('ab', 32)) AS sha256, 'a/forged.tar.gz' AS path) FROM kept_bundles WHERE session_id = 'x' AND kept_bundles.part = 2"),
		map[reconcile.Kind]string{reconcile.BundleMissing: `part 3`, reconcile.SealDiffers: "part 2 is sealed", reconcile.BundleRowForeign: "part 3"}},
	{"a second row of a part", statement("INSERT INTO bundles SELECT * REPLACE(unhex(repeat('ab', 32)) AS sha256) FROM bundles WHERE session_id = 'y'"),
		map[reconcile.Kind]string{reconcile.BundleRowForeign: "part 1 has several rows: this one is of abab", reconcile.ClaimMissing: "abababab"}},
	{"a bundle row removed", statement("ALTER TABLE bundles DELETE WHERE session_id = 'y'"),
		map[reconcile.Kind]string{reconcile.BundleRowMissing: `session "y"`, reconcile.BundleUnrecorded: `session "y"`, reconcile.ClaimForeign: `session "y"`}},
	{"the row of the first of two parts removed", statement("ALTER TABLE bundles DELETE WHERE session_id = 'x' AND part = 1"),
		map[reconcile.Kind]string{reconcile.BundleRowMissing: "part 1, is missing", reconcile.BundleUnrecorded: `session "x"`, reconcile.ClaimForeign: "part 1",
			reconcile.TraceUnsealed: `trace "x-1"`}},
	{"a bundle row changed", statement("ALTER TABLE bundles UPDATE trace_ids = ['x-1', 'x-9'], trace_count = 2 WHERE session_id = 'x' AND part = 1"),
		map[reconcile.Kind]string{reconcile.BundleDiffers: `session "x"`, reconcile.TraceUnsealed: `trace "x-2"`}},
	{"a seal removed", func(t *testing.T, s *site) {
		s.changeSeal(t, func(r *seal.Record) { r.SHA256 = strings.Repeat("ab", 32) })
	},
		map[reconcile.Kind]string{reconcile.SealDiffers: `session "y"`}},
	{"a record of a part that does not exist", func(t *testing.T, s *site) { s.changeSeal(t, func(r *seal.Record) { r.Part = 2 }) },
		map[reconcile.Kind]string{reconcile.SealDiffers: `session "y"`, reconcile.BundleRowMissing: "sealed up to part 2"}},

	{"a line of the ledger changed", func(t *testing.T, s *site) {
		s.rewrite(t, s.path("ledger", "ledger-000001.jsonl"), `"part":1`, `"part":7`)
	}, map[reconcile.Kind]string{reconcile.LedgerBroken: `file "ledger-000001.jsonl": seq`, reconcile.LedgerRow: "the row of entry", reconcile.LedgerEvent: "differs from its event",
		reconcile.ClaimForeign: "is recorded as part 1", reconcile.ClaimMissing: ""}},
	{"the ledger rewritten without a CLAIM", forgeLedger,
		map[reconcile.Kind]string{reconcile.ClaimMissing: `session "y"`, reconcile.LedgerEvent: "is not in the ledger", reconcile.LedgerRow: "row"}},
	{"a row of the ledger changed", statement("ALTER TABLE ledger UPDATE data = '{}' WHERE type = 'CLAIM' AND position(data, '\"y\"') > 0"),
		map[reconcile.Kind]string{reconcile.LedgerRow: "the row of entry"}},
	{"a row of the ledger removed", statement("ALTER TABLE ledger DELETE WHERE type = 'GENESIS'"),
		map[reconcile.Kind]string{reconcile.LedgerRow: "has no row"}},
	{"a row of the ledger that no file has", statement("INSERT INTO ledger SELECT * REPLACE(500 AS seq, 500 AS sequence) FROM ledger WHERE type = 'GENESIS'"),
		map[reconcile.Kind]string{reconcile.LedgerRow: "no file has it"}},

	{"a leaf of the log changed", func(t *testing.T, s *site) { s.flip(t, s.path("log", "leaves"), 20) },
		map[reconcile.Kind]string{reconcile.LogBroken: "leaf 0"}},
	{"the log's checkpoint changed", func(t *testing.T, s *site) { s.rewrite(t, s.path("log", "checkpoint"), "\n3\n", "\n2\n") },
		map[reconcile.Kind]string{reconcile.LogBroken: "checkpoint"}},
	{"the log removed", func(t *testing.T, s *site) { s.remove(t, s.path("log")) },
		map[reconcile.Kind]string{reconcile.LogMissing: "no log"}},
	{"the log removed, and the proofs", func(t *testing.T, s *site) { s.relog(t) },
		map[reconcile.Kind]string{reconcile.LogMissing: "by the head that bucket seals keeps of it: it had 3 leaves"}},
	{"the log rolled back, with proofs of what is left", func(t *testing.T, s *site) { s.relog(t, part{"x", 1}, part{"x", 2}) },
		map[reconcile.Kind]string{reconcile.LogRolledBack: "by the head that the ledger keeps of it: the log was rolled back: it had 3 leaves and has 2",
			reconcile.BundleUnlogged: `session "y"`}},
	{"the log rewritten in another order, with its proofs", func(t *testing.T, s *site) { s.relog(t, part{"y", 1}, part{"x", 2}, part{"x", 1}) },
		map[reconcile.Kind]string{reconcile.LogRolledBack: "by the head that bucket seals keeps of it: the log was rewritten"}},

	{"a key list that was changed", func(t *testing.T, s *site) {
		s.rewrite(t, s.path("keys", "keys.jsonl"), `"version":1`, `"version":2`)
	}, map[reconcile.Kind]string{reconcile.KeyListBroken: `file "keys.jsonl": `}},
	{"a key list that was cut short", func(t *testing.T, s *site) {
		first, _, _ := bytes.Cut(s.read(t, s.path("keys", "keys.jsonl")), []byte("\n"))
		s.write(t, s.path("keys", "keys.jsonl"), append(first, '\n'))
	}, map[reconcile.Kind]string{reconcile.KeyUnlisted: "the ledger announces the log key", reconcile.LogBroken: "names no log key"}},
	{"a key list removed", func(t *testing.T, s *site) { s.remove(t, s.path("keys", "keys.jsonl")) },
		map[reconcile.Kind]string{reconcile.KeyUnlisted: "there is no key list"}},
	{"the proof of another bundle", func(t *testing.T, s *site) {
		s.write(t, s.bundle(t, "y", 1)+".tlog-proof", s.read(t, s.bundle(t, "x", 1)+".tlog-proof"))
	}, map[reconcile.Kind]string{reconcile.ProofBad: `session "y"`}},
	{"a proof removed", func(t *testing.T, s *site) { s.remove(t, s.bundle(t, "y", 1)+".tlog-proof") },
		map[reconcile.Kind]string{reconcile.ProofMissing: `session "y"`}},
}

// Every change to the pipeline's data is reported, and nothing else is. Data that nobody has touched agrees. What
// retention has removed is no damage. The replays that are recommended repair what is missing.
func TestDamageIsReported(t *testing.T) {
	s := filled(t)
	t.Run("none", s.untouchedDataAgrees)
	s.keep(t)
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			s.restore(t)
			d.do(t, s)
			s.demand(t, d.want)
		})
	}
	s.restore(t)
	s.demand(t, nil)
	t.Run("what is missing, and a replay", s.replayRestoresWhatIsMissing)
	s.restore(t)
	t.Run("rows that have expired", s.expiredRowsAreNotMissing)
	s.restore(t)
	t.Run("rows whose messages are removed", s.rowsWhoseMessagesAreRemoved) // last: nothing restores a stream
}

// Traces that drift does not ack are counted, and soon reported as a difference.
func TestStoppedDriftIsReported(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.Publish(t, trace("x-1", "x", 1))
	s.awaitAcks(t, stream.DriftConsumer(subject.Partition("a")))
	s.stages[2].Stop(t)
	s.Publish(t, trace("x-2", "x", 2), trace("x-3", "x", 3))
	s.restWithoutDrift(t)
	summary, _ := s.compare(t)
	if summary.Counts.Unmeasured != 2 || summary.Differences != 0 {
		t.Errorf("at first: %+v", summary)
	}
	s.now = time.Now().Add(time.Hour)
	s.demand(t, map[reconcile.Kind]string{reconcile.PointOverdue: "sequence 1: drift is done with nothing of partition 12 beyond this sequence: 2 traces wait"})
	s.now = time.Time{}
	t.Run("receipts that the verifier did not write", s.forgedReceiptsAreReported) // on this site, because nothing restores a stream
}

func (s *site) forgedReceiptsAreReported(t *testing.T) {
	s.receipt(t, 77, "x", schema.Digest{7})
	s.receipt(t, 1, "elsewhere", trace("x-1", "x", 1).Digest)
	s.demand(t, map[reconcile.Kind]string{
		reconcile.ReceiptForeign: `session "x" sequence 77`,
		reconcile.ReceiptChanged: `session "elsewhere" sequence 1`,
	})
}

// demand runs the comparison. It requires differences of exactly these kinds, each with a text
// that one of its lines contains.
func (s *site) demand(t *testing.T, want map[reconcile.Kind]string) {
	t.Helper()
	_, found := s.compare(t)
	for kind, text := range want {
		if !slices.ContainsFunc(found, func(f reconcile.Difference) bool { return f.Kind == kind && strings.Contains(f.String(), text) }) {
			t.Errorf("no %s with %q is reported", kind, text)
		}
	}
	for _, f := range found {
		if _, wanted := want[f.Kind]; !wanted {
			t.Errorf("reported without damage: %s", &f)
		}
	}
	if t.Failed() {
		t.Logf("reported:\n%s", lines(found))
	}
}

// tampered lists the tables that the tests damage.
var tampered = []string{"traces", "verdicts", "dead_letters", "drift_points", "bundles", "ledger"}

// keep saves rows and files.
func (s *site) keep(t *testing.T) {
	t.Helper()
	for _, table := range tampered {
		s.Exec(t, "CREATE TABLE kept_%s AS %s", table, s.Local(table))
		s.Exec(t, "INSERT INTO kept_%s SELECT * FROM %s", table, table)
	}
	s.kept = s.dir
}

// restore restores the rows that exec has changed, and all files.
func (s *site) restore(t *testing.T) {
	t.Helper()
	for table := range s.changed {
		if !slices.Contains(tampered, table) {
			t.Fatalf("the rows of %s are not kept", table)
		}
		s.Exec(t, "TRUNCATE TABLE %s", table)
		s.Exec(t, "INSERT INTO %s SELECT * FROM kept_%s", table, table)
	}
	clear(s.changed)
	s.dir = t.TempDir()
	if err := os.CopyFS(s.dir, os.DirFS(s.kept)); err != nil {
		t.Fatal(err)
	}
}

func (s *site) receipt(t *testing.T, sequence uint64, session string, digest schema.Digest) {
	t.Helper()
	receipt := schema.Receipt{AgentID: "a", SessionID: session, Sequence: sequence, Digest: digest}
	if err := s.Client.PublishReceipts(t.Context(), [][]schema.Receipt{{receipt}}); err != nil {
		t.Fatal(err)
	}
}

// bundle returns the path of a part's file.
func (s *site) bundle(t *testing.T, session string, part uint32) string {
	t.Helper()
	bundles, err := s.Store.Bundles(t.Context(), "a", session)
	if err != nil {
		t.Fatal(err)
	}
	return s.path("bundles", bundles[part-1].Path)
}

func (s *site) read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (s *site) write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (s *site) remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func (s *site) flip(t *testing.T, path string, i int) {
	t.Helper()
	data := s.read(t, path)
	data[i] ^= 1
	s.write(t, path, data)
}

func (s *site) rewrite(t *testing.T, path, old, by string) {
	t.Helper()
	data := s.read(t, path)
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%q is not in %s:\n%s", old, path, data)
	}
	s.write(t, path, bytes.Replace(data, []byte(old), []byte(by), 1))
}

// part is a bundle of agent a.
type part struct {
	session string
	number  uint32
}

// relog writes the log again, as an attacker with its key could: with these bundles, and proofs
// only next to them. Without bundles there is no log.
func (s *site) relog(t *testing.T, parts ...part) {
	t.Helper()
	for _, p := range []part{{"x", 1}, {"x", 2}, {"y", 1}} {
		s.remove(t, s.bundle(t, p.session, p.number)+anchor.ProofSuffix)
	}
	s.remove(t, s.path("log"))
	if len(parts) == 0 {
		return
	}
	key, err := keyfile.Load(filepath.Join(s.kept, "keys", "log.key")) // the copy has another mode
	if err != nil {
		t.Fatal(err)
	}
	log, err := tlog.OpenLog(s.path("log"), tlog.LogKey{Origin: "plumbline/default", Private: key})
	if err != nil {
		t.Fatal(err)
	}
	leaves := make([][]byte, len(parts))
	for i, p := range parts {
		if leaves[i], err = anchor.Leaf(p.session, schema.DigestOf(s.read(t, s.bundle(t, p.session, p.number))).String()); err != nil {
			t.Fatal(err)
		}
	}
	proofs, err := log.Append(leaves...)
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	for i, p := range parts {
		if err := tlog.PlaceProof(s.bundle(t, p.session, p.number), proofs[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// changeSeal changes the record of session y in bucket seals.
func (s *site) changeSeal(t *testing.T, change func(*seal.Record)) {
	t.Helper()
	bucket, err := s.Client.Bucket(t.Context(), stream.Seals)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := bucket.Get(t.Context(), seal.Key("a", "y"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := seal.Decode(value)
	if err != nil {
		t.Fatal(err)
	}
	change(&record)
	changed, err := record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put := func(value []byte) {
		if _, err := bucket.Put(context.WithoutCancel(t.Context()), seal.Key("a", "y"), value); err != nil {
			t.Error(err)
		}
	}
	put(changed)
	t.Cleanup(func() { put(value) })
}

// forgeLedger writes the ledger again, as a skilled attacker could: valid by itself, but without
// the CLAIM of session y.
func forgeLedger(t *testing.T, s *site) {
	path := s.path("ledger", "ledger-000001.jsonl")
	var forged []byte
	var chain ledger.Chain
	for line := range bytes.Lines(s.read(t, path)) {
		e, err := ledger.ParseLine(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Event struct {
				SessionID string `json:"session_id"`
			} `json:"event"`
		}
		if err := json.Unmarshal(e.Data, &said); err != nil {
			t.Fatal(err)
		}
		if e.Type == ledger.Claim && said.Event.SessionID == "y" {
			continue
		}
		if e, err = chain.Append(e.Type, e.Data); err != nil {
			t.Fatal(err)
		}
		forged = e.AppendLine(forged)
	}
	s.write(t, path, forged)
}
