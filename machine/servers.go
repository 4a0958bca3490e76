package machine

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/database"
)

// servers are the broker and the database that the stages use, embedded or external.
type servers struct {
	broker *broker.Broker // nil: external
	engine *engine.Engine // nil: external

	nats       config.NATS
	clickhouse config.ClickHouse
	admin      string // DSN that may migrate
	reader     string // DSN for people
	operator   string // DSN for operators who handle dead letters
	http       string // of the engine; empty with an external database
}

// startBroker starts the broker where it is embedded. The caller stops the servers, also
// after an error.
func (s *servers) startBroker(ctx context.Context, cfg *Config) (err error) {
	s.nats = cfg.NATS
	if s.nats.URL != "" {
		return nil
	}
	cfg.Progress("starting the broker")
	if s.broker, err = broker.Start(ctx, broker.Config{DataDir: cfg.path("broker"), Port: cfg.Ports.NATSPort, Logger: cfg.Log}); err != nil {
		return err
	}
	s.nats.URL, s.nats.MonitorURL = s.broker.URL(), s.broker.MonitorURL()
	return nil
}

// startDatabase starts the database engine where it is embedded, and migrates the tables to
// this version.
func (s *servers) startDatabase(ctx context.Context, cfg *Config) (err error) {
	s.clickhouse = cfg.ClickHouse
	if dsn := s.clickhouse.DSN; dsn != "" {
		s.admin, s.reader, s.operator = dsn, dsn, dsn
	} else {
		cfg.Progress("starting the database engine")
		s.engine, err = engine.Start(ctx, engine.Config{
			DataDir:     cfg.path("engine"),
			MemoryBytes: cfg.MemoryBytes,
			NativePort:  cfg.Ports.ClickHousePort,
			HTTPPort:    cfg.Ports.ClickHouseHTTPPort,
			Options:     engine.Options{Progress: cfg.Progress, Fetching: cfg.Fetching},
			Logger:      cfg.Log,
		})
		if err != nil {
			return err
		}
		s.admin, s.clickhouse.DSN = s.engine.AdminDSN(), s.engine.ServiceDSN()
		s.reader, s.operator = s.engine.ReaderDSN(), s.engine.OperatorDSN()
		s.http = "http://" + s.engine.HTTPAddr()
	}
	cfg.Progress("updating the tables")
	return database.Cluster{Name: s.clickhouse.Cluster}.Migrate(ctx, s.admin)
}

// endpoints returns where the machine is reached.
func (m *Machine) endpoints(listener net.Addr, sessionKey, handshakeKey string) Endpoints {
	console := ""
	if m.console != nil {
		console = m.url(m.console.Addr())
	}
	grpc := ""
	if m.grpc != nil {
		grpc = m.url(m.grpc.Addr())
	}
	return Endpoints{
		ConsoleURL:     console,
		OTLPGRPC:       grpc,
		PID:            os.Getpid(),
		DataDir:        m.cfg.DataDir,
		IngestURL:      m.url(listener),
		NATSURL:        m.servers.nats.URL,
		NATSMonitorURL: m.servers.nats.MonitorURL,
		ClickHouseDSN:  m.servers.reader,
		OperatorDSN:    m.servers.operator,
		ServiceDSN:     m.servers.clickhouse.DSN,
		ClickHouseHTTP: m.servers.http,
		Bundles:        m.cfg.path("bundles"),
		PublicKey:      sessionKey,
		HandshakeKey:   handshakeKey,

		TokenFile:           m.cfg.TokenFile,
		MessagePoliciesFile: m.cfg.MessagePoliciesFile,
		DriftMode:           m.cfg.DriftMode,
		TSACertFile:         m.cfg.Anchors.TSACertFile,
		Thresholds:          *m.cfg.Thresholds,
		DriftComparison:     *m.cfg.DriftComparison,
	}
}

// url returns the address of a listener for HTTP.
func (m *Machine) url(listener net.Addr) string {
	scheme := "http://"
	if m.cfg.TLSCertFile != "" {
		scheme = "https://"
	}
	return scheme + reachable(listener)
}

// reachable returns an address that a client on this machine can use: a listener on
// all addresses is reached on loopback.
func reachable(listener net.Addr) string {
	host, port, err := net.SplitHostPort(listener.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return fmt.Sprint(listener)
}
