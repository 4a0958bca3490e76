package obs

import (
	"fmt"
	"io"
	"log/slog"
)

// Log formats.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// NewLogger returns a logger that writes to w in the given format (FormatJSON or
// FormatText) what is at or above level ("debug", "info", "warn", "error").
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: threshold}
	switch format {
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case FormatText:
		return slog.New(slog.NewTextHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("log format %q: want %s or %s", format, FormatJSON, FormatText)
	}
}
