package store

import "testing"

// A small insert builds no skip index: the merge of its part builds them. The rows are read before and after it.
func TestMergesBuildTheSkipIndexesOfSmallParts(t *testing.T) {
	if onShards {
		t.Skip("it counts the parts of one server")
	}
	s, _ := open(t)
	first, second := numbered(t, 1), numbered(t, 2)
	insert(t, s, batchOf(s, first))
	insert(t, s, batchOf(s, second))
	indexes := func() uint64 {
		return one[uint64](t, s, "SELECT sum(secondary_indices_compressed_bytes) FROM system.parts WHERE active AND database = currentDatabase() AND table = 'traces'")
	}
	check := func(when string) {
		t.Helper()
		found := sessionOf(t, s, first)
		if len(found) != 2 || found[0].TraceID != first.TraceID || found[1].TraceID != second.TraceID {
			t.Errorf("%s: the session has %d traces: %+v", when, len(found), found)
		}
	}
	if n := indexes(); n != 0 {
		t.Errorf("the indexes of small parts have %d bytes, want none", n)
	}
	check("before the merge")
	if err := s.db.Exec(t.Context(), "OPTIMIZE TABLE traces FINAL"); err != nil {
		t.Fatal(err)
	}
	if indexes() == 0 {
		t.Error("the merge built no index")
	}
	check("after the merge")
}
