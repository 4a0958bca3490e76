package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/api"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/transport"
)

// Config configures the ingest service.
type Config struct {
	config.Common `embed:""`
	Cards         config.Cards `embed:"" prefix:"card-"`
	api.Config    `embed:""`

	Connections admission.Config `embed:""`

	Listen           string        `help:"Address for publishers. /healthz, /readyz, /metrics and /v1/limitations are served there, too."`
	OTLPGRPCListen   string        `name:"otlp-grpc-listen" help:"Address for spans of OpenTelemetry over OTLP/gRPC, such as 127.0.0.1:4317, with the same tokens and certificates. Empty: none. OTLP/HTTP is served at the address for publishers in any case."`
	TokenFile        string        `help:"File of hashed tokens (plumbline token new writes it). Required unless the address is loopback." type:"path"`
	TLSCertFile      string        `name:"tls-cert-file" help:"Certificate (PEM) to serve HTTPS with." type:"path"`
	TLSKeyFile       string        `name:"tls-key-file" help:"Key (PEM) of the certificate." type:"path"`
	TLSClientCAFile  string        `name:"tls-client-ca-file" help:"Authorities (PEM) of publishers' certificates (mTLS). Every client needs a certificate from one of them, for every address. Needs tls_cert_file. Probes can use admin_listen." type:"path"`
	MaxBodyBytes     int64         `help:"Largest body of a request, both as sent and unpacked."`
	MaxInFlightBytes int64         `help:"Memory for the bodies of all current requests. Further requests wait, and are then answered with 503."`
	RequestTimeout   time.Duration `help:"Maximum duration of a request, including its upload."`
}

// Default returns the configuration of an ingest service on loopback, open to this machine.
func Default() Config {
	return Config{
		Common:           config.DefaultCommon(""),
		Cards:            config.DefaultCards(),
		Config:           api.Default(),
		Connections:      admission.Default(),
		Listen:           "127.0.0.1:8080",
		MaxBodyBytes:     64 << 20,
		MaxInFlightBytes: 256 << 20,
		RequestTimeout:   5 * time.Minute,
	}
}

// Validate returns every fault.
func (c *Config) Validate() []config.Fault {
	faults := config.Faults(c.Common.Validate())
	faults.Check(c.Listen != "", "listen", "is empty: want host:port")
	faults.CheckAddress("listen", c.Listen)
	faults = append(faults, OTLPGRPCFaults(c.OTLPGRPCListen, c.TokenFile)...)
	paired := (c.TLSCertFile == "") == (c.TLSKeyFile == "")
	faults.Check(paired, "tls_cert_file", "set both tls_cert_file and tls_key_file, or neither")
	faults.Check(c.TLSClientCAFile == "" || c.TLSCertFile != "", "tls_client_ca_file", "needs tls_cert_file and tls_key_file")
	faults = append(faults, c.Cards.Validate()...)
	faults = append(faults, c.Config.Validate()...)
	c.Connections.Validate(faults.Check)
	faults.Check(c.MaxBodyBytes >= windowBytes, "max_body_bytes", "%d: want at least %d", c.MaxBodyBytes, windowBytes)
	faults.Check(c.MaxInFlightBytes >= windowBytes, "max_in_flight_bytes", "%d: want at least %d", c.MaxInFlightBytes, windowBytes)
	faults.Check(c.RequestTimeout > 0, "request_timeout", "%s: want more than 0", c.RequestTimeout)
	return faults
}

// files holds the contents of the files that the configuration names.
type files struct {
	keeper *auth.Keeper
	tls    *tls.Config // nil: plain HTTP
	api    api.Files
}

// OTLPGRPCFaults returns the faults of the address for spans over OTLP/gRPC. An empty one has none.
func OTLPGRPCFaults(address, tokenFile string) (faults config.Faults) {
	if address != "" {
		faults.CheckAddress("otlp_grpc_listen", address)
		faults.Check(tokenFile != "" || transport.Loopback(address), "otlp_grpc_listen", "%s: without a token file anyone could publish there: name one with token_file, or listen on 127.0.0.1", address)
	}
	return faults
}

// readFiles reads all files and returns every fault. address is the listener's address.
func (c *Config) readFiles(address string, log *slog.Logger) (f files, faults config.Faults) {
	var err error
	f.keeper, err = auth.Open(c.TokenFile, address, log)
	faults.Check(err == nil, "token_file", "%v", err)
	f.tls, err = transport.Server(c.TLSCertFile, c.TLSKeyFile)
	faults.Check(err == nil, "tls_cert_file", "%v", err)
	err = c.requireCertificates(f.tls)
	faults.Check(err == nil, "tls_client_ca_file", "%v", err)
	var more config.Faults
	f.api, more = c.Config.ReadFiles(c.TokenFile == "", log)
	return f, append(faults, more...)
}

// FileFaults returns the faults of the files that the configuration names.
func (c *Config) FileFaults() []config.Fault {
	address := c.Listen
	if _, _, err := net.SplitHostPort(address); err != nil { // reported as a fault of its own
		address = "127.0.0.1:0"
	}
	_, faults := c.readFiles(address, slog.New(slog.DiscardHandler))
	return append(c.Common.FileFaults(), faults...)
}

// requireCertificates requires client certificates of the authorities in tls_client_ca_file, if
// that is configured.
func (c *Config) requireCertificates(server *tls.Config) error {
	if c.TLSClientCAFile == "" || server == nil {
		return nil
	}
	text, err := os.ReadFile(c.TLSClientCAFile)
	if err != nil {
		return err
	}
	server.ClientCAs, server.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !server.ClientCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s: has no certificate in PEM", c.TLSClientCAFile)
	}
	return nil
}

// secure returns nil if handshake messages may travel over a listener (AAP section 9.4).
// Otherwise the error says what to configure.
func (c *Config) secure(listener net.Addr) error {
	if c.TLSCertFile != "" || transport.Loopback(listener.String()) {
		return nil
	}
	return fmt.Errorf("%w: %s is neither: set tls_cert_file and tls_key_file, or listen on 127.0.0.1", transport.ErrInsecure, listener)
}
