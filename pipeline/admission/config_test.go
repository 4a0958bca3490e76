package admission

import (
	"fmt"
	"syscall"
	"testing"
)

// Limits that are not configured follow from how many files the process may open.
func TestBoundsFollowTheFiles(t *testing.T) {
	for _, c := range []struct{ cfg, want [2]int }{
		{[2]int{0, 25}, [2]int{min(files()/2, 10_000), min(files()/2, 10_000) / 4}},
		{[2]int{400, 0}, [2]int{400, 400}},
		{[2]int{400, 100}, [2]int{400, 400}},
		{[2]int{3, 1}, [2]int{3, 1}},
	} {
		cfg := Config{MaxConnections: c.cfg[0], AddressShare: c.cfg[1]}
		if most, share := cfg.bounds(); most != c.want[0] || share != c.want[1] {
			t.Errorf("%+v: %d connections, %d of an address, want %d", cfg, most, share, c.want)
		}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur != limit.Max {
		t.Errorf("the process may open %d files, the system lets it have %d; error %v", limit.Cur, limit.Max, err)
	}
	if cfg := Operators(); cfg.MaxConnections < 1 || cfg.MaxConnections > 256 {
		t.Errorf("operators: %+v", cfg)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Default(), "[]"},
		{Operators(), "[]"},
		{Config{MaxConnections: 1, AddressShare: 100}, "[]"},
		{Config{MaxConnections: -1, AddressShare: -1}, "[max_connections address_share]"},
		{Config{MaxConnections: files(), AddressShare: 101}, "[max_connections address_share]"},
	} {
		var faults []string
		c.cfg.Validate(func(ok bool, key, _ string, _ ...any) {
			if !ok {
				faults = append(faults, key)
			}
		})
		if got := fmt.Sprint(faults); got != c.want {
			t.Errorf("%+v: %s, want %s", c.cfg, got, c.want)
		}
	}
}
