package embedded

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// The server itself would keep the caller waiting for readyWithin.
func TestPortThatIsTakenEndsTheStart(t *testing.T) {
	dir := t.TempDir()
	at, err := Settle(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", address(at.Host, at.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	begun := time.Now()
	_, err = Start(dir, at, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("start on a port that is taken: %v", err)
	}
	if took := time.Since(begun); took > readyWithin/2 {
		t.Errorf("the start took %v to fail", took)
	}
}
