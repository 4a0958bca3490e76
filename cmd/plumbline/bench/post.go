package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// posting is how a load is posted to ingest: the agents are divided among publishers, each of which has one
// request open at a time.
type posting struct {
	url        string
	load       *load
	publishers int
	lines      int     // in a post
	rate       float64 // traces a second that become due; 0: each post is due when the one before it is answered
}

// posted is when each trace of the load was due and answered.
type posted struct {
	due, answered []time.Time
	last          time.Time // when the last post was due
	repeated      int       // posts that ingest did not store at once
}

// latencies returns the time from due to answered of each trace.
func (p *posted) latencies() []time.Duration {
	all := make([]time.Duration, len(p.due))
	for i := range p.due {
		all[i] = p.answered[i].Sub(p.due[i])
	}
	return all
}

// run posts the whole load. At a given rate the traces become due in the rhythm of their dates, and a post is
// due with its last trace. A publisher that is late posts at once; the latency counts from when the post was due, so
// what waits for a slow answer counts as slow, too.
func (p *posting) run(ctx context.Context) (*posted, error) {
	result := &posted{due: make([]time.Time, len(p.load.records)), answered: make([]time.Time, len(p.load.records))}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: p.publishers}}
	defer client.CloseIdleConnections()
	repeats := make([]int, p.publishers)
	group, working := errgroup.WithContext(ctx)
	began, pace := time.Now(), p.pace()
	for n, mine := range p.load.byAgent(p.publishers) {
		group.Go(func() (err error) {
			for from := 0; from < len(mine); from += p.lines {
				post := mine[from:min(from+p.lines, len(mine))]
				due := time.Now()
				if p.rate > 0 {
					due = began.Add(time.Duration(float64(p.load.due[post[len(post)-1]]) * pace))
					if err := sleepUntil(working, due); err != nil {
						return err
					}
				}
				repeated, err := p.post(working, client, post)
				if err != nil {
					return err
				}
				repeats[n] += repeated
				for _, i := range post {
					result.due[i], result.answered[i] = due, time.Now()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for n := range repeats {
		result.repeated += repeats[n]
	}
	for _, due := range result.due {
		if due.After(result.last) {
			result.last = due
		}
	}
	return result, nil
}

// pace returns the time between two traces, divided by that between their dates. It is 1 if they are dated when they
// are due.
func (p *posting) pace() float64 {
	if p.rate == 0 {
		return 0
	}
	return float64(len(p.load.records)) / p.rate / p.load.lasts.Seconds()
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// postAgain is how long a publisher waits before it repeats a post that was not stored in whole.
const postAgain = 100 * time.Millisecond

// post posts traces until ingest has stored all of them, and returns how often it repeated the request.
func (p *posting) post(ctx context.Context, client *http.Client, traces []int) (repeated int, err error) {
	var body bytes.Buffer
	for _, i := range traces {
		body.Write(p.load.records[i].Data)
		body.WriteByte('\n')
	}
	for ; ; repeated++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/traces", bytes.NewReader(body.Bytes()))
		if err != nil {
			return repeated, err
		}
		request.Header.Set("Content-Type", "application/x-ndjson")
		answer, err := client.Do(request)
		if err != nil {
			return repeated, err
		}
		text, err := io.ReadAll(answer.Body)
		if err := answer.Body.Close(); err != nil {
			return repeated, err
		}
		if err != nil {
			return repeated, fmt.Errorf("read ingest's answer: %w", err)
		}
		stored := bytes.Count(text, []byte(`"status":"accepted"`)) + bytes.Count(text, []byte(`"status":"duplicate"`))
		switch {
		case answer.StatusCode == http.StatusOK && stored == len(traces):
			return repeated, nil
		case bytes.Contains(text, []byte(`"status":"refused"`)) || answer.StatusCode >= 400 && answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < 500:
			return repeated, fmt.Errorf("ingest answered %s: %.500s", answer.Status, text)
		}
		if err := sleepUntil(ctx, time.Now().Add(postAgain)); err != nil {
			return repeated, err
		}
	}
}
