package store

import "testing"

func TestFloorKeepsSequenceAndBytes(t *testing.T) {
	s, dsn := open(t)
	f, err := OpenFloor(t.Context(), Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := NewFloorBatch()
	for round := range uint64(2) {
		b.Reset()
		b.Add(2*round+1, []byte("{first}"))
		b.Add(2*round+2, []byte("{second}"))
		if err := f.Insert(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := f.Rows(t.Context()); err != nil || rows != 4 {
		t.Errorf("%d rows, %v; want 4", rows, err)
	}
	if got := one[string](t, s, "SELECT raw FROM floor WHERE stream_sequence = 4"); got != "{second}" {
		t.Errorf("message 4 is %q", got)
	}
}
