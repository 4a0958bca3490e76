package reading

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
)

// Config configures the reading side. Without a DSN there is none: its routes say so.
type Config struct {
	ClickHouse ClickHouse    `embed:"" prefix:"clickhouse-"`
	BundleDir  string        `help:"Directory of the sealed bundles (bundles/ in the exporter's data directory), if this process can read it: GET /v1/bundles/{sha256} then serves them. Empty: none." type:"path"`
	QueryTime  time.Duration `help:"Maximum duration of one query for a reader."`
	QueryRows  uint64        `help:"Maximum number of rows that one query for a reader may read. A query that needs more is refused, and the answer says how to narrow it."`

	DuplicateLookup time.Duration `help:"Maximum duration of one look-up of lines that are older than the broker's duplicate window (docs/PUBLISH.md). 0: no look-up. Needs clickhouse_dsn."`
}

// ClickHouse is the database that is read.
type ClickHouse struct {
	DSN     string `name:"dsn" help:"Database that answers GET /v1/traces and GET /v1/bundles: clickhouse://user:password@host:9000/plumbline. A user that may only read is enough. Empty: none; publishing needs no database." secret:"userinfo"`
	Cluster string `placeholder:"NAME" help:"ClickHouse cluster over which the tables are distributed. Empty: one server."`
}

// Default returns the configuration without a database.
func Default() Config {
	return Config{QueryTime: 10 * time.Second, QueryRows: 20_000_000, DuplicateLookup: 250 * time.Millisecond}
}

// Validate returns every fault.
func (c *Config) Validate() (faults config.Faults) {
	if c.ClickHouse.DSN != "" {
		whole := config.ClickHouse{DSN: c.ClickHouse.DSN, Cluster: c.ClickHouse.Cluster}
		faults = append(faults, whole.Validate()...)
	}
	faults.Check(c.ClickHouse.DSN != "" || c.ClickHouse.Cluster == "", "clickhouse_cluster", "needs clickhouse_dsn")
	faults.Check(c.ClickHouse.DSN != "" || c.BundleDir == "", "bundle_dir", "needs clickhouse_dsn: the database knows which bundle belongs to whom")
	faults.Check(c.QueryTime >= time.Second, "query_time", "%s: want at least 1s", c.QueryTime)
	faults.Check(c.QueryRows > 0, "query_rows", "want at least 1")
	faults.Check(c.DuplicateLookup >= 0, "duplicate_lookup", "%s: want 0 or more", c.DuplicateLookup)
	return faults
}

// FileFaults returns the faults of the directory that the configuration names.
func (c *Config) FileFaults() (faults config.Faults) {
	if c.BundleDir == "" {
		return nil
	}
	info, err := os.Stat(c.BundleDir)
	missing := errors.Is(err, fs.ErrNotExist) // the exporter makes it
	faults.Check(missing || err == nil && info.IsDir(), "bundle_dir", "%s: want a directory that this process can read", c.BundleDir)
	return faults
}
