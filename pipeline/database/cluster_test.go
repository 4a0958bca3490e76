package database

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what TestClusterStatements finds into testdata")

// Only the lines that differ between a cluster's statements and the migration's file are
// compared, per migration. All other lines are the file's, in the same order. A single server
// gets the files unchanged.
func TestClusterStatements(t *testing.T) {
	var found strings.Builder
	for _, without := range []bool{false, true} {
		l := layout{Cluster: Cluster{Name: "evidence", WithoutKeeper: without}, database: "plumbline", shards: 3}
		fmt.Fprintf(&found, "==== cluster of 3 shards, without Keeper: %t\n", without)
		each := func(name, text string) {
			fmt.Fprintf(&found, "-- %s\n", name)
			for _, statement := range statementsOf(text) {
				made, err := l.statement(statement)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, m := range made {
					if strings.Contains(m, "ON CLUSTER") == without {
						t.Errorf("%s: with Keeper every statement is for the cluster, and without none: %s", name, m)
					}
				}
				found.WriteString(otherLines(t, name, statement, made))
			}
		}
		eachMigration(t, each)
		each("a later change", "ALTER TABLE traces\n    ADD COLUMN IF NOT EXISTS a UInt8;\nALTER TABLE traces MODIFY SETTING min_rows_to_fsync_after_merge = 1;\n")
	}
	const golden = "testdata/cluster.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(found.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != found.String() {
		t.Errorf("the statements for a cluster are not those of %s: run the test with -update, and read what changed", golden)
	}
}

// otherLines returns the lines of the first statement that differ from those of its original, and
// all further statements.
func otherLines(t *testing.T, name, original string, statements []string) string {
	t.Helper()
	own, made := strings.Split(original, "\n"), strings.Split(statements[0], "\n")
	if len(own) != len(made) {
		t.Fatalf("a statement of %s has %d lines, for a cluster %d", name, len(own), len(made))
	}
	var others strings.Builder
	for i := range own {
		if own[i] != made[i] {
			others.WriteString(made[i] + "\n")
		}
	}
	for _, statement := range statements[1:] {
		others.WriteString(statement + "\n")
	}
	return others.String()
}

// A statement of an unknown form is refused. It is not sent to one server of many.
func TestUnknownStatementsAreRefused(t *testing.T) {
	l := layout{Cluster: Cluster{Name: "evidence"}, database: "plumbline", shards: 3}
	for _, text := range []string{
		"OPTIMIZE TABLE traces;", "CREATE MATERIALIZED VIEW v\nAS SELECT 1;", "ALTER TABLE traces\n    ADD COLUMN a\nALTER TABLE traces\n    ADD COLUMN b;",
		"ALTER TABLE traces\n    ADD COLUMN a;\nOPTIMIZE TABLE traces;", "ALTER TABLE traces DELETE WHERE 1;",
		"CREATE TABLE IF NOT EXISTS t\n(\n)\nENGINE = MergeTree\nORDER BY a;",
	} {
		if statements, err := l.statements(text); err == nil {
			t.Errorf("%q became %q", text, statements)
		}
	}
}

// The columns that choose a row's shard are part of its identity. Otherwise its copies could be
// on two shards, and both would be visible.
func TestShardsAreChosenByTheSortKey(t *testing.T) {
	d, _ := open(t)
	l := layout{Cluster: Cluster{Name: "evidence"}, database: "plumbline", shards: 3}
	for _, table := range Tables {
		if onShards {
			table += localSuffix
		}
		key := one[string](t, d, "SELECT sorting_key FROM system.tables WHERE database = currentDatabase() AND name = '"+table+"'")
		engine := l.distributed(strings.TrimSuffix(table, localSuffix))
		_, columns, _ := strings.Cut(engine, "sipHash64(")
		columns, _, _ = strings.Cut(columns, ")")
		for _, column := range strings.Split(columns, ", ") {
			if !slices.Contains(strings.Split(key, ", "), column) {
				t.Errorf("table %s: %s chooses the shard and is not in the sort key (%s)", table, column, key)
			}
		}
	}
}

// The preflight knows every table that the migrations create.
func TestEveryTableIsNamed(t *testing.T) {
	eachMigration(t, func(name, text string) {
		heads := statementHead.FindAllStringSubmatch(text, -1)
		if len(heads) == 0 {
			t.Fatalf("%s: no line is the head of a statement", name)
		}
		for _, head := range heads {
			if head[1] == "CREATE TABLE IF NOT EXISTS" && !slices.Contains(Tables, head[2]) {
				t.Errorf("table %s of %s is not among the tables that are checked", head[2], name)
			}
		}
	})
}

// Shards must have no weights, and a shard with replicas must let ClickHouse replicate.
func TestWeightsAndReplicationOfShardsAreChecked(t *testing.T) {
	good := []node{{Shard: 1, Weight: 1, Replica: 1, Internal: 1}, {Shard: 1, Weight: 1, Replica: 2, Internal: 1}, {Shard: 2, Weight: 1, Replica: 1}}
	if found := shardWeaknesses("c", good); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	weak := []node{{Shard: 1, Weight: 1, Replica: 1}, {Shard: 1, Weight: 1, Replica: 2}, {Shard: 2, Weight: 3, Replica: 1, Internal: 1}, {Shard: 2, Weight: 3, Replica: 2, Internal: 1}}
	var said []string
	for _, w := range shardWeaknesses("c", weak) {
		said = append(said, w.Object+" "+w.Setting)
	}
	if want := []string{"shard 1 of cluster c internal_replication", "shard 2 of cluster c weight"}; !slices.Equal(said, want) {
		t.Errorf("weaknesses are %q, want %q", said, want)
	}
}

// A part that a replica fetches must be synced too.
func TestReplicasSyncWhatTheyFetch(t *testing.T) {
	settings := " SETTINGS " + strings.Join(durableSettings, ", ")
	live := liveTables{
		"traces_local": {Name: "traces_local", Engine: "ReplicatedReplacingMergeTree('/a', '{replica}', arrival)" + settings, Policy: "default"},
		"cards_local":  {Name: "cards_local", Engine: "ReplicatedReplacingMergeTree('/b', '{replica}')" + settings + ", " + fetchSetting, Policy: "default"},
	}
	if found := live.weaknesses("traces_local"); len(found) != 1 || found[0].Setting+" = "+found[0].Wanted != fetchSetting {
		t.Errorf("%+v", found)
	}
	if found := live.weaknesses("cards_local"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}
