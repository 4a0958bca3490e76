package web

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/transport"
)

// Config configures the console.
type Config struct {
	config.Common `embed:""`
	ClickHouse    ClickHouse `embed:"" prefix:"clickhouse-"`

	Listen       string        `help:"Address of the console, for browsers."`
	TokenFile    string        `help:"File of hashed tokens (plumbline token new writes it). People log in with a token that has the scope traces:read. Required unless the address is loopback." type:"path"`
	TLSCertFile  string        `name:"tls-cert-file" help:"Certificate (PEM) to serve HTTPS with." type:"path"`
	TLSKeyFile   string        `name:"tls-key-file" help:"Key (PEM) of the certificate." type:"path"`
	BundleDir    string        `help:"Directory of the sealed bundles (bundles/ in the exporter's data directory), if this process can read it: pages then show their chains and let people download them. Empty: none." type:"path"`
	IngestURL    string        `name:"ingest-url" placeholder:"URL" help:"Address of ingest. It gets what people do here, replays of dead letters and ends of sessions, each with the token of its visitor. Empty: people only look."`
	IngestCAFile string        `name:"ingest-ca-file" help:"Certificates (PEM) that ingest's certificate is signed by, or that certificate itself. Empty: the authorities of the system." type:"path"`
	LettersDSN   string        `name:"letters-dsn" placeholder:"DSN" help:"Database user that may also read the bytes of dead letters, which clickhouse_dsn need not. Empty: dead letters are listed without their bytes, and cannot be replayed here." secret:"userinfo"`
	ServiceURLs  []string      `name:"service-url" placeholder:"URL" help:"Operators' interfaces of other services, for instance http://verifier.example:8082, separated by commas. With dns+ before http every address of the name is asked, for a service with several instances. The pages show whether each works (/readyz), and its backlogs (/metrics). An https address is checked as ingest's (ingest_ca_file)."`
	SessionTime  time.Duration `help:"How long a login lasts at most. A token that is revoked ends it at once."`
	QueryTime    time.Duration `help:"Maximum duration of one query of a page."`
	QueryRows    uint64        `help:"Maximum number of rows that one query of a page may read."`
}

// ClickHouse is the database that the pages are made of.
type ClickHouse struct {
	DSN     string `name:"dsn" help:"Database: clickhouse://user:password@host:9000/plumbline. A user that may only read is enough." secret:"userinfo"`
	Cluster string `placeholder:"NAME" help:"ClickHouse cluster over which the tables are distributed. Empty: one server."`
}

// Default returns the configuration of a console on loopback, open to this machine.
func Default() Config {
	return Config{
		Common:      config.DefaultCommon(""),
		ClickHouse:  ClickHouse{DSN: config.DefaultClickHouse().DSN},
		Listen:      "127.0.0.1:8081",
		SessionTime: 12 * time.Hour,
		QueryTime:   10 * time.Second,
		QueryRows:   200_000_000,
	}
}

// Validate returns every fault.
func (c *Config) Validate() []config.Fault {
	faults := config.Faults(c.Common.Validate())
	faults.Check(c.Listen != "", "listen", "is empty: want host:port")
	faults.CheckAddress("listen", c.Listen)
	whole := config.ClickHouse{DSN: c.ClickHouse.DSN, Cluster: c.ClickHouse.Cluster}
	faults = append(faults, whole.Validate()...)
	faults.Check(c.IngestURL == "" || secureURL(c.IngestURL), "ingest_url", "%q: want https://host:port, or http://127.0.0.1:port: it gets the tokens of visitors", c.IngestURL)
	for _, address := range c.ServiceURLs {
		faults.Check(serviceURL(address), "service_url", "%q: want http://host:port, https://host:port or dns+http://host:port, without user and path", address)
	}
	faults.Check(len(c.ServiceURLs) <= mostServices, "service_url", "%d addresses: want at most %d", len(c.ServiceURLs), mostServices)
	if c.LettersDSN != "" {
		letters := config.ClickHouse{DSN: c.LettersDSN, Cluster: c.ClickHouse.Cluster}
		for _, fault := range letters.Validate() {
			faults.Check(fault.Key == "clickhouse_cluster", "letters_dsn", "%s", fault.Message)
		}
	}
	paired := (c.TLSCertFile == "") == (c.TLSKeyFile == "")
	faults.Check(paired, "tls_cert_file", "set both tls_cert_file and tls_key_file, or neither")
	faults.Check(c.SessionTime >= time.Minute, "session_time", "%s: want at least 1m", c.SessionTime)
	faults.Check(c.QueryTime >= time.Second, "query_time", "%s: want at least 1s", c.QueryTime)
	faults.Check(c.QueryRows > 0, "query_rows", "want at least 1")
	return faults
}

// secureURL reports whether a token may be sent to an address.
func secureURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && transport.Loopback(u.Host))
}

// serviceURL reports whether an address is one of an operators' interface. One with eachAddress is plain HTTP: a certificate names no addresses.
func serviceURL(text string) bool {
	text, each := strings.CutPrefix(text, eachAddress)
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery+u.Fragment == "" && (u.Scheme == "http" || u.Scheme == "https" && !each)
}

// FileFaults returns the faults of the files that the configuration names.
func (c *Config) FileFaults() []config.Fault {
	address := c.Listen
	if _, _, err := net.SplitHostPort(address); err != nil { // reported as a fault of its own
		address = "127.0.0.1:0"
	}
	_, _, faults := c.readFiles(address, slog.New(slog.DiscardHandler))
	return append(c.Common.FileFaults(), faults...)
}

// readFiles reads the token file and the certificate, and returns every fault. tls is nil for plain HTTP.
func (c *Config) readFiles(address string, log *slog.Logger) (keeper *auth.Keeper, secure *tls.Config, faults config.Faults) {
	keeper, err := auth.Open(c.TokenFile, address, log)
	faults.Check(err == nil, "token_file", "%v", err)
	secure, err = transport.Server(c.TLSCertFile, c.TLSKeyFile)
	faults.Check(err == nil, "tls_cert_file", "%v", err)
	_, err = transport.Trust(c.IngestCAFile)
	faults.Check(err == nil, "ingest_ca_file", "%v", err)
	return keeper, secure, faults
}
