package database

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

// A table drift_state with few marks becomes one with many, and keeps its rows and constraints, whichever
// statement of an earlier run was the last.
func TestStatesGetMoreMarks(t *testing.T) {
	dsn := enginetest.Migrated(t, Migrate)
	d := openDSN(t, dsn)
	var made string // as the migrations make the table
	eachMigration(t, func(name, text string) {
		if name == refinedFile {
			made = statementsOf(text)[0]
		}
	})
	few := strings.Replace(made, ", "+refinedSetting, "", 1)
	if few == made {
		t.Fatalf("%s makes a table without %s", refinedFile, refinedSetting)
	}
	_, engine, _ := strings.Cut(made, "\nENGINE ")
	const rows = "SELECT toString(arraySort(groupArray(cityHash64(*)))) FROM drift_state FINAL"
	steps := []string{
		"CREATE TABLE drift_state_refined AS drift_state ENGINE " + engine,
		copyRows("drift_state", "drift_state_refined"),
		"RENAME TABLE drift_state TO drift_state_coarse",
		"RENAME TABLE drift_state_refined TO drift_state",
		copyRows("drift_state_coarse", "drift_state"),
	}
	for done := range len(steps) + 1 {
		t.Run(fmt.Sprintf("%d statements ran", done), func(t *testing.T) {
			exec(t, d, "DROP TABLE drift_state")
			exec(t, d, few)
			exec(t, d, "ALTER TABLE drift_state ADD CONSTRAINT mine CHECK tenant != 'x'")
			exec(t, d, "INSERT INTO drift_state SELECT * FROM generateRandom('tenant LowCardinality(String), stream_created DateTime64(9), stream_partition UInt16, agent_id String, card_id String, "+
				"version UInt64, applied UInt64, applied_above Array(UInt64), last_event_time DateTime64(9), state String', 1, 10, 3) LIMIT 50")
			before := one[string](t, d, rows)
			for _, step := range steps[:done] {
				exec(t, d, step)
			}
			for range 2 {
				if err := Migrate(t.Context(), dsn); err != nil {
					t.Fatal(err)
				}
			}
			if after := one[string](t, d, rows); after != before {
				t.Error("the rows changed")
			}
			definition := one[string](t, d, "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'drift_state'")
			if !strings.Contains(definition, refinedSetting) || !strings.Contains(definition, "CONSTRAINT mine") {
				t.Errorf("the table is %s", definition)
			}
			if left := one[uint64](t, d, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'drift_state_')"); left != 0 {
				t.Errorf("%d tables are left over", left)
			}
		})
	}
}
