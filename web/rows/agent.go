package rows

import "context"

// The queries of an agent's page. The agent is a filter of each, and the caller has checked that the reader
// may see it.
var queryAlerts = query("agent_alerts")

// Alerts returns the alerts of drift of an agent, the newest first, at most limit.
func (r *Reader) Alerts(ctx context.Context, agent string, limit int) ([]Alert, error) {
	return read[Alert](ctx, r, "the alerts of an agent", queryAlerts, argument("agent", agent), argument("limit", limit))
}
