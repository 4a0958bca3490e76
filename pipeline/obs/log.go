package obs

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/plumbline/plumbline/aivs/redact"
)

// Log formats.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// NewLogger returns a logger that writes to w in the given format (FormatJSON or FormatText). It
// writes what is at or above level ("debug", "info", "warn", "error").
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: hideSecrets}
	switch format {
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case FormatText:
		return slog.New(slog.NewTextHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("log format %q: want %s or %s", format, FormatJSON, FormatText)
	}
}

// hideSecrets redacts text of others in a line of the log: the id of a session may contain a
// secret, and an error may quote it.
func hideSecrets(_ []string, a slog.Attr) slog.Attr {
	var text string
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	default:
		return a
	}
	if hidden, count := redact.AllRules.Message(text); count.Sum() > 0 {
		a.Value = slog.StringValue(hidden)
	}
	return a
}
