package publisher

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// SendAlone publishes the bytes of one trace unchanged, including line breaks, and
// returns the outcome. The error is a *Problem if the request itself is refused.
func (c *Client) SendAlone(ctx context.Context, raw []byte) (Outcome, error) {
	var outcome Outcome
	err := c.persist(ctx, func(p *pauses) error {
		got, err := c.once(ctx, http.MethodPost, "/v1/traces", "application/json", raw)
		if err != nil {
			return err
		}
		told, err := got.outcomes(1)
		if err != nil {
			return err
		}
		if told[0].Status == "" || told[0].Status == again {
			p.after = got.after
			return got.problem()
		}
		outcome = told[0]
		return nil
	})
	if err != nil {
		return outcome, fmt.Errorf("send a trace: %w", err)
	}
	return outcome, nil
}

// MarkLetters marks dead letters, by the digests of their bytes, with what was done about
// them. The error is a *Problem if the service refuses it.
func (c *Client) MarkLetters(ctx context.Context, mark, note string, digests []string) error {
	body, err := json.Marshal(map[string]any{"mark": mark, "note": note, "digests": digests})
	if err != nil {
		return err
	}
	if _, err := c.do(ctx, http.MethodPost, "/v1/dead-letters/marks", "application/json", body); err != nil {
		return fmt.Errorf("mark dead letters: %w", err)
	}
	return nil
}
