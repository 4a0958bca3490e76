package transport

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "9999999": 24 * time.Hour,
		"Sat, 28 Nov 2026 12:01:00 GMT": time.Minute, "Sat, 28 Nov 2026 11:00:00 GMT": 0, "Sun, 28 Nov 2027 12:00:00 GMT": 24 * time.Hour,
	} {
		if got := RetryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
