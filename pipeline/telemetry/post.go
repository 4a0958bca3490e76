package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/transport"
)

const (
	attemptTime = 10 * time.Second // of one attempt
	mostAnswer  = 64 << 10         // bytes of an answer that are read
)

// outcome is a label of the metrics.
type outcome string

const (
	sent     outcome = "sent"
	rejected outcome = "rejected" // the receiver does not want the request, now or later
	dropped  outcome = "dropped"  // the receiver did not take it now
)

// answer is the result of one attempt.
type answer struct {
	outcome  outcome
	reason   string        // for the log
	wait     time.Duration // that the receiver asks for
	rejected int64         // spans or points of a request that was taken
}

// protocol is what differs between OTLP/HTTP and OTLP/gRPC.
type protocol interface {
	// request returns a request that carries an encoded request of OTLP, with the headers of the protocol.
	request(ctx context.Context, address, signal string, encoded []byte) (*http.Request, error)
	// answer returns what an answer says, and the encoded answer of OTLP in it, if there is one. text is what was
	// read of its body: all, or more than mostAnswer bytes, or what came before err.
	answer(response *http.Response, text []byte, err error) (got answer, encoded []byte)
}

// poster makes requests to one receiver.
type poster struct {
	cfg      config.OTLP
	protocol protocol
	address  string
	agent    string
	client   *http.Client
	within   time.Duration // bounds an attempt
}

func newPoster(cfg *config.OTLP, agent string) (*poster, error) {
	trust, err := transport.Trust(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("otlp_ca_file: %w", err)
	}
	p := &poster{cfg: *cfg, address: strings.TrimRight(cfg.Endpoint, "/"), agent: agent, within: attemptTime}
	if cfg.Protocol == config.OTLPOverGRPC {
		p.protocol, p.client = overGRPC{}, transport.OutboundHTTP2(trust)
	} else {
		p.protocol, p.client = overHTTP{}, transport.Outbound(trust)
	}
	return p, nil
}

// signal is the traces or the metrics. One goroutine uses it.
type signal struct {
	name      string // traces or metrics
	poster    *poster
	log       *slog.Logger
	rejected  func(answer []byte) (items int64, reason string)
	failing   bool
	notBefore time.Time
}

// send makes one attempt to send an encoded request. It logs the first failure in a row, and the end of the failures.
func (s *signal) send(ctx context.Context, body []byte, err error) answer {
	got := answer{outcome: rejected, reason: "the request cannot be encoded"}
	if err == nil {
		got = s.poster.post(ctx, s.name, body, s.rejected)
	}
	failed := got.outcome != sent || got.rejected > 0
	switch {
	case failed && !s.failing:
		s.log.Warn("the receiver of OTLP does not take everything", "signal", s.name, "protocol", s.poster.cfg.Protocol, "outcome", string(got.outcome), "reason", got.reason)
	case !failed && s.failing:
		s.log.Info("the receiver of OTLP takes everything again", "signal", s.name, "protocol", s.poster.cfg.Protocol)
	}
	s.failing = failed
	return got
}

// post makes one attempt. OTLP says which answers are worth another one.
func (p *poster) post(ctx context.Context, signal string, encoded []byte, read func([]byte) (int64, string)) answer {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	request, err := p.protocol.request(ctx, p.address, signal, encoded)
	if err != nil {
		return answer{outcome: rejected, reason: "the request cannot be made"} // the error has the address
	}
	given, err := p.cfg.Headers()
	if err != nil {
		return answer{outcome: dropped, reason: err.Error()}
	}
	headers := http.Header{}
	maps.Copy(headers, given)
	maps.Copy(headers, request.Header)
	headers.Set("User-Agent", p.agent)
	request.Header = headers
	response, err := p.client.Do(request)
	if err != nil {
		return answer{outcome: dropped, reason: transport.Reason(err)}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	got, taken := p.protocol.answer(response, text, err)
	if got.outcome == sent {
		got.rejected, got.reason = read(taken)
	}
	return got
}

// rejectedSpans returns how many spans the receiver rejected of a request that it took. An answer that cannot be
// read rejects none. The reason does not repeat what the receiver says.
func rejectedSpans(text []byte) (int64, string) {
	r := ptraceotlp.NewExportResponse()
	if err := r.UnmarshalProto(text); err != nil {
		return 0, ""
	}
	n := r.PartialSuccess().RejectedSpans()
	return n, fmt.Sprintf("%d spans of a request are rejected", n)
}

// rejectedPoints does the same for the points of metrics.
func rejectedPoints(text []byte) (int64, string) {
	r := pmetricotlp.NewExportResponse()
	if err := r.UnmarshalProto(text); err != nil {
		return 0, ""
	}
	n := r.PartialSuccess().RejectedDataPoints()
	return n, fmt.Sprintf("%d points of a collection are rejected", n)
}
