package opledger

import (
	"slices"
	"testing"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// The sequences of a batch lie within batchMessages, also where messages between them were deleted.
// The auditor relies on it when it starts.
func TestSequencesOfABatchAreNear(t *testing.T) {
	for _, c := range []struct{ sequences, want []uint64 }{
		{[]uint64{1}, []uint64{1}},
		{[]uint64{7, 8, 6 + batchMessages}, []uint64{7, 8, 6 + batchMessages}},
		{[]uint64{7, 8, 7 + batchMessages, 8 + batchMessages}, []uint64{7, 8}},
		{[]uint64{7, 5000, 5001}, []uint64{7}},
	} {
		messages := make([]stream.Message, len(c.sequences))
		for i, sequence := range c.sequences {
			messages[i].Sequence = sequence
		}
		var got []uint64
		for _, m := range narrow(messages) {
			got = append(got, m.Sequence)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("of %d a batch has %d, want %d", c.sequences, got, c.want)
		}
	}
}
