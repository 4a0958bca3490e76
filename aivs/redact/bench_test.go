package redact

import (
	"bytes"
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

func BenchmarkRecord(b *testing.B) {
	plain := []byte(`{"action":{"type":"execute","parameters":{"path":"/tmp"}},"reasoning":"` + string(bytes.Repeat([]byte("some reason "), 150)) + `"}`)
	hidden := bytes.Replace(plain, []byte("path"), []byte("token"), 1)
	for name, raw := range map[string][]byte{"nothing": plain, "one": hidden} {
		for set, rules := range map[string]Rules{"draft": NoRules, "all": AllRules} {
			b.Run(name+"/"+set, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					if _, _, err := rules.Record(raw); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCorpus redacts the recorded traces with the draft's rule alone and with all
// rules: the ratio is the cost of the optional rules.
func BenchmarkCorpus(b *testing.B) {
	lines := published.Lines(b, "corpus/traces.jsonl.gz")
	for _, set := range []struct {
		name  string
		rules Rules
	}{{"draft", NoRules}, {"all", AllRules}} {
		b.Run(set.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, line := range lines {
					if _, _, err := set.rules.Record(line); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
