package deps

import (
	_ "github.com/ClickHouse/clickhouse-go/v2"
	_ "github.com/alecthomas/kong"
	_ "github.com/cenkalti/backoff/v4"
	_ "github.com/ebitengine/purego"
	_ "github.com/go-json-experiment/json"
	_ "github.com/gowebpki/jcs"
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/nats-io/nats.go/jetstream"
	_ "github.com/nats-io/nats.go/micro"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "gopkg.in/yaml.v3"
	_ "pgregory.net/rapid"
)
