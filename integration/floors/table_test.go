// Package floors has the one table of what a package may depend on, and the test that
// checks it over every path of imports.
package floors

// A floor states what the packages of some patterns must never reach, by any path of imports.
//
// A pattern for our packages is relative to the module ("aap/..." is aap and all below it); a
// pattern for another module begins with its domain. A pattern that begins with '-' excludes
// packages. A package's own pattern does not count against it: {of: a and b, never: a and b}
// keeps a and b apart.
type floor struct {
	of    []string
	only  []string // those of our packages that they may reach; nil for any
	never []string // what they may not reach, our packages or others
	pure  bool     // they do no I/O: see inputOutput
	why   string
}

var (
	judgement = []string{"schema/...", "-schema/published", "aap/...", "aivs/...", "-aivs/anchor/anchortest", "-aivs/aivstest", "message/...", "ledger/..."}
	stages    = []string{"pipeline/ingest/...", "pipeline/verifier/...", "pipeline/drift/...", "pipeline/exporter/..."}
	servers   = []string{"broker/...", "engine/...", "fleet/..."}
	top       = []string{"machine/...", "cmd/...", "integration/..."}
	forTests  = []string{"pipeline/pipelinetest/...", "broker/brokertest/...", "engine/enginetest/...", "aivs/anchor/anchortest", "aivs/aivstest",
		"pipeline/transport/transporttest", "pipeline/durable/durabletest", "pipeline/destination/s3/s3test",
		"clients/clientstest", "schema/published"}

	nats       = "github.com/nats-io/..."
	clickhouse = "github.com/ClickHouse/..."
	kong       = "github.com/alecthomas/kong/..."
	prometheus = "github.com/prometheus/..."
	yaml       = "gopkg.in/yaml.v3/..."
	purego     = "github.com/ebitengine/purego/..."
)

var table = []floor{
	// Judging and proof.
	{of: list("schema/..."), only: list("schema/..."), why: "the definition of the data does not depend on its users"},
	{of: list("aap/..."), only: list("aap/...", "schema/..."), why: "judgement: values in, values out"},
	{of: list("aivs/...", "-aivs/anchor/anchortest", "-aivs/aivstest"), only: list("aivs/...", "schema/..."), why: "proof: values in, values out"},
	{of: list("message/..."), only: list("message/...", "schema/..."), why: "judgement of messages: values in, values out"},
	{of: list("ledger/..."), only: list("ledger/...", "schema/..."), why: "the chain: values in, values out"},
	{of: judgement, pure: true, why: "judgement and proof depend on the values given, not on a file, connection or log"},
	{of: judgement, never: list(nats, clickhouse, kong, prometheus, yaml), why: "judgement and proof are linked into programs without a broker, a database or a command line"},

	// The client of agents' runtimes.
	{of: list("client"), only: list("aap/...", "message/...", "schema/...", "pipeline/transport", "pipeline/subject"), why: "an agent's runtime links no part of a service"},
	{of: list("client"), never: list(nats, clickhouse, kong, prometheus, yaml), why: "an agent's runtime links only what HTTP needs; who wants NATS imports client/overnats"},
	{of: list("client/mcprecorder"), only: list("client", "aap/...", "message/...", "schema/...", "pipeline/transport", "pipeline/subject"),
		never: list(nats, clickhouse, kong, prometheus, yaml), why: "a recorder between an MCP client and its server links no more than an agent's runtime"},
	{of: list("client/overnats"), only: list("client", "aap/...", "message/...", "schema/...", "pipeline/transport", "pipeline/subject"),
		never: list(clickhouse, kong, prometheus, yaml), why: "client/overnats adds only NATS to client"},
	{of: list("examples/..."), only: list("examples/...", "client", "aap/...", "message/...", "schema/...", "pipeline/transport", "pipeline/subject"),
		never: list(clickhouse, kong, prometheus, yaml), why: "the examples use only what an agent has"},

	// The packages of the pipeline.
	{of: list("pipeline/...", "-pipeline/pipelinetest/...", "-pipeline/destination/s3/s3test", "-"+stages[0], "-"+stages[1], "-"+stages[2], "-"+stages[3]),
		never: list("child", stages, servers, top), why: "shared packages depend on no stage, and not on how servers are started: they take addresses"},
	{of: list("pipeline/store", "pipeline/database", "pipeline/seal"), never: list(nats, "pipeline/stream", "pipeline/config", "pipeline/service", kong, prometheus, yaml),
		why: "the tables are read without a broker: the contents of a message arrive as values"},
	{of: list("pipeline/events", "pipeline/keystore", "pipeline/keyfile", "pipeline/tlog", "pipeline/outbox", "pipeline/destination/...",
		"-pipeline/destination/s3/...", "pipeline/durable", "pipeline/subject", "pipeline/transport", "pipeline/auth", "pipeline/admission", "pipeline/problem", "pipeline/obs", "pipeline/reload"),
		never: list(nats, clickhouse, kong, "pipeline/stream", "pipeline/store", "pipeline/database", "pipeline/config", "pipeline/service"), why: "files, formats and rules: other packages own the broker and the database"},
	{of: list("pipeline/telemetry"), never: list(nats, clickhouse, "pipeline/stream", "pipeline/store", "pipeline/database", "pipeline/service"), why: "what a process says about itself depends on no broker and no database"},
	{of: list("pipeline/subject"), pure: true, why: "names only"},
	{of: list("pipeline/wire"), only: list("pipeline/wire", "pipeline/subject", "ledger/...", "schema/..."), pure: true,
		never: list(nats, clickhouse, kong, prometheus, yaml), why: "messages are encoded and decoded without a broker"},
	{of: list("pipeline/stream"), never: list(clickhouse, kong, prometheus, "pipeline/store", "pipeline/service", "pipeline/destination/..."), why: "the broker's adapter depends on no database and no command"},

	// The stages and the packages that start them.
	{of: stages, never: list(stages, servers, top), why: "stages meet in streams and tables; they take addresses of servers"},
	{of: list("pipeline/...", "-pipeline/ingest/...", "-pipeline/api/..."), never: list("pipeline/api/..."), why: "only ingest mounts the routes of package api"},
	{of: list("pipeline/ingest/...", "pipeline/api/...", "pipeline/request/..."), never: list(clickhouse, "pipeline/store", "pipeline/database", "pipeline/reading"), why: "a trace is accepted without the database, and without its client's code"},
	{of: list("pipeline/reading"), never: list("pipeline/ingest/...", "pipeline/api/..."), why: "readers are answered from the tables; cmd/ingest and package machine put ingest and its reading side together"},
	{of: list("pipeline/..."), never: list("web/..."), why: "the pages depend on the pipeline, which works without them"},
	{of: list("web/..."), never: list("child", stages, servers, top), why: "the pages are made of the tables, and of what the process shows of itself; they take addresses of servers"},
	{of: list("web/rows"), never: list(nats, "pipeline/stream", "pipeline/config", "pipeline/service", kong, prometheus, yaml), why: "the tables are read without a broker"},
	{of: list("cmd/ingest", "cmd/verifier", "cmd/drift", "cmd/exporter", "cmd/webhooks", "cmd/console"), never: list("machine/...", "child", servers), why: "a service takes addresses; only the tool starts all of them on one machine"},
	{of: list("broker/...", "-broker/brokertest/...", "engine/...", "-engine/enginetest/..."), never: list(stages, top), why: "the servers do not depend on their clients"},
	{of: list("cmd/plumbline-engine"), only: list("child", "engine/serve", "engine/protocol", "pipeline/durable"), why: "the process of the library has only what that needs"},
	{of: list("...", "-cmd/plumbline-engine", "-engine/serve", "-integration/...", without(forTests)), never: list(purego), why: "a program that can load a library of C is not static"},
	{of: list("fleet/..."), only: list("fleet/...", "schema/..."), why: "the simulated fleet uses only what an agent has"},
	{of: list("child"), only: list("child"), why: "processes, and nothing else"},

	// The top, and packages only for tests.
	{of: list("...", "-cmd/...", "-integration/...", "-machine/..."), never: top, why: "only commands, and the tests of the whole, start a machine"},
	{of: list("machine/...", "cmd/..."), never: list("cmd/...", "integration/..."), why: "no package imports commands and tests of the whole"},
	{of: list("...", "-integration/...", without(forTests)), never: forTests, why: "the test servers are not part of the product"},
}

// An owner lists the only packages that may import something directly; others use those packages.
type owner struct {
	of  string
	by  []string
	why string
}

var owners = []owner{
	{nats, list("pipeline/stream", "client/overnats", "broker/...", "examples/nats", "cmd/plumbline/bench/floor"), "the broker is reached through pipeline/stream; agents bring a connection to client/overnats, or publish as examples/nats does; broker runs the server and writes its users; the floor of the benchmark does not use what it is compared with"},
	{clickhouse, list("pipeline/database", "pipeline/store", "web/rows", "engine/...", "cmd/plumbline/bench/floor"), "the database is reached through pipeline/store and pipeline/database, by the console through web/rows; engine asks whether its child answers; the floor of the benchmark does not use what it is compared with"},
	{kong, list("pipeline/config", "cmd/plumbline"), "settings are read in one place; the tool has commands of its own"},
	{"github.com/minio/minio-go/...", list("pipeline/destination/s3"), "object stores are reached through pipeline/destination"},
}

// inputOutput is what a package without I/O must not import. For the standard library, only
// imports by our packages and by the packages of other modules that they reach are
// checked, not the standard library's own imports: fmt imports os.
//
// Not listed: embed (the bytes are in the binary), io and io/fs (interfaces), crypto/x509
// (parsing; only SystemCertPool reads files), time (a clock passed in is a rule of review).
var inputOutput = list("C", "database/sql/...", "io/ioutil", "log/...", "net", "net/http/...", "net/rpc/...", "net/smtp", "net/textproto",
	"os/...", "path/filepath", "plugin", "syscall/...", "testing/...", "golang.org/x/sys/...")

// exempt lists imports of inputOutput by packages of other modules that do not count.
var exempt = map[string]exemption{
	"github.com/digitorus/pkcs7": {list("io/ioutil", "os", "os/exec", "testing"),
		"verify_test_dsa.go imports them, a test whose name does not end in _test.go; nothing that we call does"},
}

type exemption struct {
	imports []string
	why     string
}
