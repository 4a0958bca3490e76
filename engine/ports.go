package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// ports are the ports of an engine. ports.json in the data directory keeps those of the last start, so a
// dashboard's connection survives a restart.
type ports struct {
	NativePort int `json:"native"`
	HTTPPort   int `json:"http"`
}

// choosePorts chooses ports that are free now: those that cfg fixes, otherwise those of the last
// start, otherwise others. Another process may take one before the server binds it, so a start is
// repeated, and a repetition chooses others than the last start had.
func (s *settings) choosePorts(cfg Config, attempt int) error {
	last, err := loadPorts(s.Dir)
	if err != nil {
		return err
	}
	s.ports = last
	if attempt > 1 {
		s.ports = ports{}
	}
	if err := choosePort(&s.NativePort, cfg.NativePort, cfg.HTTPPort); err != nil {
		return err
	}
	if err := choosePort(&s.HTTPPort, cfg.HTTPPort, s.NativePort); err != nil {
		return err
	}
	for name, ports := range map[string][2]int{"native": {last.NativePort, s.NativePort}, "HTTP": {last.HTTPPort, s.HTTPPort}} {
		if was, is := ports[0], ports[1]; was != 0 && was != is {
			cfg.Logger.Warn("the database engine's port has changed: programs that have the old one need the new one",
				slog.String("interface", name), slog.Int("old", was), slog.Int("new", is))
		}
	}
	return s.save(s.Dir, last)
}

// choosePort sets a port to the fixed one if that is not 0, and otherwise to another one if it is taken
// or the same as other. A fixed one that is taken is an error: the ports of the last start stay.
func choosePort(port *int, fixed, other int) (err error) {
	if fixed != 0 {
		*port = fixed
		if err := child.PortFree("127.0.0.1", fixed); err != nil {
			return fmt.Errorf("start engine: %w, or choose another port", err)
		}
		return nil
	}
	if *port == other {
		*port = 0
	}
	for {
		if *port, err = child.FreePort("127.0.0.1", *port); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
		if *port != other {
			return nil
		}
		*port = 0 // no process listens on the other port yet
	}
}

func portsFile(dir string) string { return filepath.Join(dir, "ports.json") }

// loadPorts returns the ports of the last start, 0 at the first start or where a loss of power erased them.
func loadPorts(dir string) (p ports, err error) {
	text, err := os.ReadFile(portsFile(dir))
	if err == nil && !durable.Blank(text) {
		if err = json.Unmarshal(text, &p); err != nil {
			err = fmt.Errorf("%w: remove the file to get new ports", err)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("engine: read the ports from %s: %w", portsFile(dir), err)
	}
	return p, nil
}

func (p ports) save(dir string, last ports) error {
	if p == last {
		return nil
	}
	text, err := json.Marshal(p)
	if err == nil {
		err = durable.WriteFile(portsFile(dir), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("engine: keep the ports: %w", err)
	}
	return nil
}
