package store

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Config configures the store: which ClickHouse, which tenant, which timeouts. A zero member
// means its default. DSN has no default.
type Config struct {
	DSN    string // clickhouse://user:password@host:port/database; ?secure=true for TLS (see secure)
	Tenant string // owner of the rows; "default"
	Stage  string // name of the caller in query ids and the server's logs; "plumbline"

	Cluster string // cluster of the tables, for Inspect; empty: one server

	InsertTimeout time.Duration // one attempt to insert a batch; 2 min
	QueryTimeout  time.Duration // one query; 5 min
	Connections   int           // open at a time; 8
}

// complete fills in the defaults and reports every fault.
func (c *Config) complete() error {
	if c.Tenant == "" {
		c.Tenant = "default"
	}
	if c.Stage == "" {
		c.Stage = "plumbline"
	}
	if c.InsertTimeout == 0 {
		c.InsertTimeout = 2 * time.Minute
	}
	if c.QueryTimeout == 0 {
		c.QueryTimeout = 5 * time.Minute
	}
	if c.Connections == 0 {
		c.Connections = 8
	}
	return c.validate()
}

func (c *Config) validate() error {
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
		faults = append(faults, fmt.Errorf("clickhouse.connections: %d; traces and verdicts are inserted side by side, want 2 at least", c.Connections))
	}
	return errors.Join(faults...)
}

// options parses the DSN, and chooses the compression if the DSN does not: none on loopback,
// where it costs more than it saves, and LZ4 elsewhere.
func (c *Config) options() (*clickhouse.Options, error) {
	o, err := parseDSN(c.DSN)
	if err != nil {
		return nil, err
	}
	o.MaxOpenConns, o.MaxIdleConns = c.Connections, c.Connections
	o.ReadTimeout = max(c.InsertTimeout, c.QueryTimeout)
	o.ClientInfo.Products = append(o.ClientInfo.Products, struct{ Name, Version string }{"plumbline-" + c.Stage, "1"})
	return o, nil
}

// pingTimeout limits each step of a ping whose context has more time.
const pingTimeout = 2 * time.Second

// forPing returns options for a connection that only checks whether the server answers.
func forPing(o *clickhouse.Options) *clickhouse.Options {
	ping := *o
	ping.MaxOpenConns, ping.MaxIdleConns = 1, 1
	ping.DialTimeout, ping.ReadTimeout = min(o.DialTimeout, pingTimeout), pingTimeout
	return &ping
}

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
	if o.DialTimeout == 0 {
		o.DialTimeout = 10 * time.Second
	}
	if o.Compression == nil {
		o.Compression = compressionFor(o.Addr)
	}
	return o, nil
}

func compressionFor(addresses []string) *clickhouse.Compression {
	for _, a := range addresses {
		if !loopback(a) {
			return &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
		}
	}
	return &clickhouse.Compression{Method: clickhouse.CompressionNone}
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
