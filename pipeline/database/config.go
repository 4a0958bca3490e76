package database

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// Config configures the connections: which ClickHouse, which tenant, which timeouts. A zero
// member means its default. DSN has no default.
type Config struct {
	DSN    string // clickhouse://user:password@host:port/database; ?secure=true for TLS (see secure)
	Tenant string // owner of the rows; "default"
	Stage  string // name of the caller in query ids and the server's logs; "plumbline"

	Cluster string // cluster of the tables; empty: one server

	InsertTimeout time.Duration // one attempt to insert a batch; 2 min
	QueryTimeout  time.Duration // one query; 5 min
	Connections   int           // open at a time; 8
	DialTimeout   time.Duration // each step of opening one; as the DSN says, or 10 s

	Limits Limits // of each query, in addition to its time
}

// Limits is what one query may use of the server. A zero member sets no limit.
type Limits struct {
	Rows    uint64 // that it reads; beyond them it fails (TooBroad)
	Memory  uint64 // bytes
	Threads int
}

// apply adds the limits to the settings of a query.
func (l Limits) apply(settings clickhouse.Settings) {
	if l.Rows > 0 {
		settings["max_rows_to_read"], settings["read_overflow_mode"] = l.Rows, "throw"
	}
	if l.Memory > 0 {
		settings["max_memory_usage"] = l.Memory
	}
	if l.Threads > 0 {
		settings["max_threads"] = l.Threads
	}
}

// complete fills in the defaults and reports every fault.
func (c *Config) complete() error {
	c.Tenant = cmp.Or(c.Tenant, "default")
	c.Stage = cmp.Or(c.Stage, "plumbline")
	c.InsertTimeout = cmp.Or(c.InsertTimeout, 2*time.Minute)
	c.QueryTimeout = cmp.Or(c.QueryTimeout, 5*time.Minute)
	c.Connections = cmp.Or(c.Connections, 8)
	var faults []error
	if c.DSN == "" {
		faults = append(faults, errors.New("clickhouse.dsn: is empty; want clickhouse://user:password@host:port/database"))
	}
	if c.InsertTimeout < time.Second {
		faults = append(faults, fmt.Errorf("clickhouse.insert_timeout: %v is below 1s", c.InsertTimeout))
	}
	if c.QueryTimeout < time.Second {
		faults = append(faults, fmt.Errorf("clickhouse.query_timeout: %v is below 1s", c.QueryTimeout))
	}
	if c.Connections < 2 {
		faults = append(faults, fmt.Errorf("clickhouse.connections: %d is below 2; traces and verdicts are inserted in parallel", c.Connections))
	}
	return errors.Join(faults...)
}

// options returns the driver's options for the configuration.
func (c *Config) options() (*clickhouse.Options, error) {
	o, err := parseDSN(c.DSN)
	if err != nil {
		return nil, err
	}
	o.MaxOpenConns, o.MaxIdleConns = c.Connections, c.Connections
	o.DialTimeout = cmp.Or(c.DialTimeout, o.DialTimeout)
	o.ReadTimeout = max(c.InsertTimeout, c.QueryTimeout)
	o.ClientInfo.Products = append(o.ClientInfo.Products, struct{ Name, Version string }{"plumbline-" + c.Stage, "1"})
	return o, nil
}

// parseDSN parses the DSN, and chooses the compression if the DSN does not: none on loopback,
// where it costs more than it saves, and LZ4 elsewhere.
func parseDSN(dsn string) (*clickhouse.Options, error) {
	o, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		// The DSN holds a password. The driver's error redacts it.
		return nil, fmt.Errorf("clickhouse.dsn: %w", err)
	}
	if o.Protocol != clickhouse.Native {
		return nil, errors.New("clickhouse.dsn: want the native protocol, clickhouse://host:9000/database")
	}
	if err := secure(o); err != nil {
		return nil, err
	}
	o.DialTimeout = cmp.Or(o.DialTimeout, 10*time.Second)
	if o.Compression == nil {
		o.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
		if !slices.ContainsFunc(o.Addr, func(address string) bool { return !transport.Loopback(address) }) {
			o.Compression.Method = clickhouse.CompressionNone
		}
	}
	return o, nil
}

// Parameters of a DSN, in addition to the driver's secure=true. Each one names a file in PEM.
const (
	caFile   = "ca_file"   // authorities to verify the server's certificate with; the system's if absent
	certFile = "cert_file" // this client's certificate, for a server that requires one
	keyFile  = "key_file"  // its key
)

// secure completes the options of an encrypted connection: TLS 1.3 at least, and the files that
// the DSN names. The driver puts the names of the files among the settings for the server. secure
// removes them there.
func secure(o *clickhouse.Options) error {
	files := map[string]string{}
	for _, name := range []string{caFile, certFile, keyFile} {
		if path, ok := o.Settings[name]; ok {
			files[name] = fmt.Sprint(path)
			delete(o.Settings, name)
		}
	}
	switch {
	case o.TLS == nil && len(files) == 0:
		return nil
	case o.TLS == nil:
		return errors.New("clickhouse.dsn: ca_file, cert_file and key_file are for TLS: add secure=true")
	case (files[certFile] == "") != (files[keyFile] == ""):
		return errors.New("clickhouse.dsn: cert_file and key_file are given together or not at all")
	}
	o.TLS.MinVersion = transport.MinimumTLS
	if path := files[caFile]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("clickhouse.dsn: ca_file: %w", err)
		}
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("clickhouse.dsn: ca_file %s: has no certificate in PEM", path)
		}
	}
	if files[certFile] != "" {
		pair, err := tls.LoadX509KeyPair(files[certFile], files[keyFile])
		if err != nil {
			return fmt.Errorf("clickhouse.dsn: cert_file and key_file: %w", err)
		}
		o.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
