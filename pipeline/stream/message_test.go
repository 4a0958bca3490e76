package stream_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/stream"
)

func TestParseReply(t *testing.T) {
	for _, reply := range []string{
		"$JS.ACK.TRACES.verifier.2.30.4.1700000000000000005.6",
		"$JS.ACK._.hash.TRACES.verifier.2.30.4.1700000000000000005.6",
		"$JS.ACK.domain.hash.TRACES.verifier.2.30.4.1700000000000000005.6.random",
	} {
		delivered, sequence, timestamp, err := stream.ParseReply(reply)
		if err != nil || delivered != 2 || sequence != 30 || timestamp != 1700000000000000005 {
			t.Errorf("ParseReply(%q) = %d, %d, %d, %v", reply, delivered, sequence, timestamp, err)
		}
		if n := testing.AllocsPerRun(10, func() { _, _, _, err = stream.ParseReply(reply) }); n != 0 {
			t.Errorf("ParseReply(%q) allocates %v times", reply, n)
		}
	}
	for _, reply := range []string{
		"", "_INBOX.a.b", "$JS.ACK.TRACES.verifier", "$JS.ACK.TRACES.verifier.x.30.4.1.6", "$JS.ACK.TRACES.verifier.2..4.1.6",
	} {
		if _, sequence, _, err := stream.ParseReply(reply); err == nil {
			t.Errorf("ParseReply(%q) = %d, want an error", reply, sequence)
		}
	}
}
