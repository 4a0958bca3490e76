package engine

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"text/template"
	"time"

	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	// DefaultMemory is the memory bound of the whole server where none is configured, in bytes.
	DefaultMemory = 4 << 30
	// LeastMemory is what the server needs to merge parts at all, in bytes.
	LeastMemory = 512 << 20
)

// Config configures one engine.
type Config struct {
	// DataDir holds everything of this engine and nothing else. It is created
	// if needed. One engine at a time can use it.
	DataDir string
	// MemoryBytes bounds the whole server, at least 512 MiB; default 4 GiB. One
	// query may use three quarters of it. Above a quarter, a query sorts and groups
	// on disk.
	MemoryBytes int64
	// NativePort and HTTPPort are the TCP ports on 127.0.0.1. 0 takes the port of the last start in
	// DataDir, or a free one at the first start and where another process has taken that port.
	NativePort, HTTPPort int
	// Program is the program to run; the zero value means Locate(ctx, Options).
	Program Program
	// Options is used to locate the program where Program is zero.
	Options Options
	// ReadyTimeout bounds a start of the server; default 30 s.
	ReadyTimeout time.Duration
	// Logger receives changes of the server's state; default slog.Default().
	Logger *slog.Logger
}

func (c *Config) complete() error {
	if c.DataDir == "" {
		return errors.New("engine: DataDir must be set")
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.MemoryBytes = cmp.Or(c.MemoryBytes, DefaultMemory)
	if c.MemoryBytes < LeastMemory {
		return fmt.Errorf("engine: MemoryBytes is %d, at least %d are needed", c.MemoryBytes, LeastMemory)
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return fmt.Errorf("engine: resolve the data directory: %w", err)
	}
	c.DataDir = dir
	return nil
}

// settings are the parameters of the two templates.
type settings struct {
	Dir string
	ports
	MemoryBytes, CacheBytes int64
	QueryBytes, SpillBytes  int64
	KeepFree                int64 // bytes of the disk
	OwnSession              bool  // the program has its own internal session (the library)
	Users                   []user
}

var (
	//go:embed config.xml.tmpl
	configText string
	//go:embed users.xml.tmpl
	usersText string

	templates = map[string]*template.Template{
		"config.xml": parse("config.xml", configText),
		"users.xml":  parse("users.xml", usersText),
	}
)

func parse(name, text string) *template.Template {
	escape := func(s string) (string, error) {
		var b bytes.Buffer
		err := xml.EscapeText(&b, []byte(s))
		return b.String(), err
	}
	return template.Must(template.New(name).Funcs(template.FuncMap{"xml": escape}).Parse(text))
}

// write writes the files that the server reads when it starts.
func (s settings) write() error {
	for name, tmpl := range templates {
		var b bytes.Buffer
		if err := tmpl.Execute(&b, s); err != nil {
			return fmt.Errorf("engine: fill %s: %w", name, err)
		}
		if err := durable.WriteFile(filepath.Join(s.Dir, name), b.Bytes(), 0o600); err != nil {
			return fmt.Errorf("engine: write %s: %w", name, err)
		}
	}
	return nil
}
