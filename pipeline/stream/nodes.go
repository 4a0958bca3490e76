package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// leastPayload is what the broker must accept: the largest trace with headers.
const leastPayload = 1 << 20

const raisePayload = "set max_payload in the server's configuration"

// node is the relevant part of a server's monitoring page /varz.
type node struct {
	Name       string `json:"server_name"`
	MaxPayload int64  `json:"max_payload"`
	JetStream  struct {
		Config *struct {
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
	} `json:"jetstream"`
}

// inspectNodes checks the settings of whole servers, on each server whose monitoring pages are
// configured. A server that does not answer is reported as unknown as long as another one
// answers: a cluster works without it, and so does this client.
func (c *Client) inspectNodes(ctx context.Context, r *Report) error {
	connected := checker{object: "server " + c.conn.ConnectedServerName(), report: r}
	atLeast(connected, "max_payload", c.conn.MaxPayload(), leastPayload, raisePayload)
	unread := map[string]bool{c.conn.ConnectedServerName(): true}
	maps.Copy(unread, r.nodes)
	var silent []error
	addresses := strings.FieldsFunc(c.cfg.MonitorURL, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, address := range addresses {
		n, err := readNode(ctx, address)
		if err != nil {
			silent = append(silent, err)
			continue
		}
		delete(unread, n.Name)
		check := checker{object: "server " + n.Name, report: r}
		if n.Name != c.conn.ConnectedServerName() {
			atLeast(check, "max_payload", n.MaxPayload, leastPayload, raisePayload)
		}
		if !n.JetStream.Config.SyncAlways {
			check.weak("jetstream.sync_interval", n.JetStream.Config.SyncInterval, "always", "set sync_interval: always in the server's jetstream block")
		}
	}
	if len(addresses) > 0 && len(silent) == len(addresses) {
		return errors.Join(silent...)
	}
	for _, err := range silent {
		r.Unknown = append(r.Unknown, "a server: "+err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		r.Unknown = append(r.Unknown, fmt.Sprintf("jetstream.sync_interval of server %s: set its monitor_url to have it checked; "+
			"unless it is \"always\", a power failure loses acknowledged traces", name))
	}
	return nil
}

func readNode(ctx context.Context, address string) (n node, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/varz", nil)
	if err != nil {
		return n, errors.New("broker.monitor_url: want http://host:port, several separated by commas") // the path may be secret
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	answer, err := http.DefaultClient.Do(request.WithContext(ctx))
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // this error does not contain the address
	}
	if err != nil {
		return n, fmt.Errorf("read the broker's settings at %s: %w", request.URL.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return n, fmt.Errorf("read the broker's settings at %s: broker.monitor_url answers %s", request.URL.Host, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&n); err != nil {
		return n, fmt.Errorf("read the broker's settings at %s: %w", request.URL.Host, err)
	}
	if n.JetStream.Config == nil {
		return n, fmt.Errorf("read the broker's settings at %s: server %s has no JetStream", request.URL.Host, n.Name)
	}
	return n, nil
}
