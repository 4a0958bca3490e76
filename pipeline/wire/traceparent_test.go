package wire

import "testing"

const (
	parentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentSpan  = "00f067aa0ba902b7"
)

// The ids of a valid header are read, of every version. Every other header is ignored.
func TestTraceparent(t *testing.T) {
	valid := "00-" + parentTrace + "-" + parentSpan + "-01"
	for header, want := range map[string]string{
		valid:                      valid,
		"cc" + valid[2:]:           "cc" + valid[2:],
		"cc" + valid[2:] + "-more": "cc" + valid[2:],
		valid + "-more":            "",
		"cc" + valid[2:] + "more":  "",
		"ff" + valid[2:]:           "",
		"":                         "",
		valid[:54]:                 "",
		"00_" + valid[3:]:          "",
		"00-" + parentTrace + "_" + parentSpan + "-01":              "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-" + parentSpan + "-01": "",
		"00-00000000000000000000000000000000-" + parentSpan + "-01": "",
		"00-" + parentTrace + "-0000000000000000-01":                "",
		"00-" + parentTrace + "-" + parentSpan + "-0g":              "",
		"00-" + parentTrace[:31] + "\x00-" + parentSpan + "-01":     "",
	} {
		if got := Traceparent(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
		trace, span := TraceAndSpan(header)
		if want != "" && (trace != parentTrace || span != parentSpan) || want == "" && trace+span != "" {
			t.Errorf("%q: %q %q", header, trace, span)
		}
	}
	var trace, span string
	if n := testing.AllocsPerRun(100, func() { trace, span = TraceAndSpan(valid) }); n != 0 || trace+span != parentTrace+parentSpan {
		t.Errorf("%v allocations, %q %q", n, trace, span)
	}
}
