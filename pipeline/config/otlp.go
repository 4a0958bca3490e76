package config

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// The protocols of OTLP, by their names in OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	OTLPOverHTTP = "http/protobuf"
	OTLPOverGRPC = "grpc"
)

// OTLP configures where a process sends its own metrics and spans (package telemetry).
type OTLP struct {
	Endpoint    string        `placeholder:"URL" help:"Send own metrics and spans to this receiver of OTLP, such as https://collector.example:4318 (docs/OTEL.md). For OTLP/HTTP, /v1/metrics and /v1/traces are appended. Empty: none." secret:"userinfo"`
	Protocol    string        `values:"http/protobuf,grpc" help:"Protocol of the receiver: http/protobuf (OTLP/HTTP, often on port 4318) or grpc (OTLP/gRPC, often on port 4317)."`
	HeadersFile string        `help:"File of headers for the receiver, such as its token, one Name: value a line. It is read for each request." type:"path"`
	CAFile      string        `name:"ca-file" help:"Certificate authority (PEM) that the receiver's certificate is checked against. Empty: those of the system." type:"path"`
	Interval    time.Duration `help:"How often metrics are sent, at least 1s. 0: only spans are sent."`
}

// DefaultOTLP returns the defaults: nothing is sent.
func DefaultOTLP() OTLP { return OTLP{Protocol: OTLPOverHTTP, Interval: time.Minute} }

// Validate returns every fault.
func (o *OTLP) Validate() (faults Faults) {
	faults.Check(o.Interval == 0 || o.Interval >= time.Second, "otlp_interval", "%s: want 0, or at least 1s", o.Interval)
	faults.Check(o.Protocol == OTLPOverHTTP || o.Protocol == OTLPOverGRPC, "otlp_protocol", "%q: want %s or %s", o.Protocol, OTLPOverHTTP, OTLPOverGRPC)
	if o.Endpoint == "" {
		faults.Check(o.HeadersFile == "", "otlp_headers_file", "needs otlp_endpoint")
		faults.Check(o.CAFile == "", "otlp_ca_file", "needs otlp_endpoint")
		return faults
	}
	u, err := url.Parse(o.Endpoint) // do not repeat it: it may contain a secret
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		faults.Check(false, "otlp_endpoint", "want https://host:port or http://host:port")
		return faults
	}
	faults.Check(u.User == nil && u.RawQuery == "" && u.Fragment == "", "otlp_endpoint", "has a user, a query or a fragment: a secret belongs into the file that otlp_headers_file names")
	faults.Check(o.Protocol != OTLPOverGRPC || strings.Trim(u.Path, "/") == "", "otlp_endpoint", "has a path: an address of OTLP/gRPC has none")
	faults.Check(o.CAFile == "" || u.Scheme == "https", "otlp_ca_file", "needs https in otlp_endpoint")
	faults.Check(o.HeadersFile == "" || u.Scheme == "https" || transport.Loopback(u.Hostname()), "otlp_headers_file", "would travel unencrypted: want https in otlp_endpoint")
	return faults
}

// FileFaults returns the faults of the files.
func (o *OTLP) FileFaults() (faults Faults) {
	_, err := o.Headers()
	faults.Check(err == nil, "otlp_headers_file", "%v", err)
	_, err = transport.Trust(o.CAFile)
	faults.Check(err == nil, "otlp_ca_file", "%v", err)
	return faults
}

const mostHeaderBytes = 64 << 10

// Headers reads the file of headers; nil if there is none. It refuses a file that everyone may read. No error
// contains a part of a line.
func (o *OTLP) Headers() (http.Header, error) {
	if o.HeadersFile == "" {
		return nil, nil
	}
	text, err := ReadGuarded(o.HeadersFile, mostHeaderBytes, 0o007, "lets everyone read it: chmod o-rwx")
	if err != nil {
		return nil, err
	}
	headers, number := http.Header{}, 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("%s:%d: want Name: value", o.HeadersFile, number)
		}
		headers.Add(name, value)
	}
	if len(headers) == 0 {
		return nil, fmt.Errorf("%s: has no header: want Name: value", o.HeadersFile)
	}
	return headers, nil
}
