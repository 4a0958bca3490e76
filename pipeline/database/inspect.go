package database

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"
)

// Tables are the names of the tables. They have the order of the migrations.
var Tables = []string{
	"traces", "verdicts", "drift_points", "drift_alerts", "loop_alerts", "drift_baselines", "drift_state",
	"sessions", "session_verdicts", "bundles", "bundle_copies", "seal_runs", "ledger", "dead_letters", "dead_letter_marks",
	"revocations", "cards", "coherence_results", "task_results", "messages", "card_positions",
}

// durableSettings are part of the definition of each table. With them an acknowledged INSERT
// survives a loss of power, and so does the part into which its rows are merged.
var durableSettings = []string{"fsync_after_insert = 1", "fsync_part_directory = 1", "min_rows_to_fsync_after_merge = 1"}

// removers are the privileges on evidence that no service may have. Each of them removes or changes
// rows, at once or later: a TTL expires them, and without fsync a loss of power removes them.
var removers = []string{
	"ALTER UPDATE", "ALTER DELETE", "TRUNCATE", "DROP TABLE",
	"ALTER TTL", "ALTER SETTINGS", "ALTER MODIFY COLUMN", "ALTER CLEAR COLUMN", "ALTER DROP COLUMN", "ALTER RENAME COLUMN",
	"ALTER MOVE PARTITION", "ALTER FETCH PARTITION",
}

// Weakness is a setting of the database that is below the durability requirement.
type Weakness struct {
	Object  string // "table traces", "the user"
	Setting string // as ClickHouse names it
	Found   string
	Wanted  string
	Why     string
	Remedy  string // what to do
}

func (w Weakness) Error() string {
	return fmt.Sprintf("%s: %s is %s, want %s (%s): %s", w.Object, w.Setting, w.Found, w.Wanted, w.Why, w.Remedy)
}

// Inspection is the result of Inspect.
type Inspection struct {
	Weaknesses []Weakness
	Unknown    []string // servers of a cluster that could not be inspected, and why
}

// Ready returns nil if ClickHouse answers and has every table.
func (d *DB) Ready(ctx context.Context) error {
	if err := d.answers(ctx); err != nil {
		return err
	}
	live, err := d.liveTables(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range Tables {
		if _, found := live[name]; !found {
			faults = append(faults, missingTable(name))
		}
	}
	return errors.Join(faults...)
}

func missingTable(name string) error {
	return fmt.Errorf("table %s is missing: %w", name, ErrDeployment)
}

// Inspect checks whether the database meets the durability requirement (docs/GUARANTEES.md). It
// changes nothing. It checks that every table exists and fsyncs its inserts on a disk known to
// honour fsync, and that this user cannot remove or change a row. In a cluster it checks every
// server.
func (d *DB) Inspect(ctx context.Context) (Inspection, error) {
	if d.cfg.Cluster != "" {
		return d.inspectCluster(ctx)
	}
	live, err := d.liveTables(ctx)
	if err != nil {
		return Inspection{}, err
	}
	var found []Weakness
	for _, name := range Tables {
		found = append(found, live.weaknesses(name)...)
	}
	rights, err := d.rightsToRemove(ctx, live)
	return Inspection{Weaknesses: append(found, rights...)}, err
}

// liveTable describes a table as ClickHouse reports it.
type liveTable struct {
	Name   string `ch:"name"`
	Engine string `ch:"engine_full"`
	Policy string `ch:"storage_policy"`
}

// setting returns the value of a setting of the table, or "" if its definition has none.
func (t *liveTable) setting(name string) string {
	_, settings, _ := strings.Cut(t.Engine, " SETTINGS ")
	for setting := range strings.SplitSeq(settings, ", ") {
		if value, is := strings.CutPrefix(setting, name+" = "); is {
			return value
		}
	}
	return ""
}

// liveTables are the tables of a database by their names.
type liveTables map[string]liveTable

//go:embed sql/queries/tables.sql
var queryTables string

func (d *DB) liveTables(ctx context.Context) (liveTables, error) {
	live := liveTables{}
	for t, err := range Each[liveTable](ctx, d, queryTables) {
		if err != nil {
			return nil, fmt.Errorf("database: list the tables: %w", err)
		}
		live[t.Name] = *t
	}
	return live, nil
}

// weaknesses returns the weaknesses of a table that holds rows.
func (l liveTables) weaknesses(name string) []Weakness {
	object := "table " + name
	t, exists := l[name]
	if !exists {
		return []Weakness{{Object: object, Setting: "existence", Found: "missing", Wanted: "present",
			Why: "its rows cannot be stored", Remedy: ErrDeployment.Error()}}
	}
	if strings.HasPrefix(t.Engine, "Distributed(") {
		return []Weakness{{Object: object, Setting: "engine", Found: t.Engine, Wanted: "ReplacingMergeTree",
			Why: "the servers of its cluster are not checked", Remedy: "name the cluster with --clickhouse-cluster"}}
	}
	var found []Weakness
	wanted := durableSettings
	if strings.HasPrefix(t.Engine, "Replicated") {
		wanted = append(slices.Clone(wanted), fetchSetting)
	}
	for _, setting := range wanted {
		if name, value, _ := strings.Cut(setting, " = "); t.setting(name) != value {
			found = append(found, Weakness{Object: object, Setting: name, Found: cmp.Or(t.setting(name), "not set"), Wanted: value,
				Why: "rows may not survive a loss of power", Remedy: "ALTER TABLE " + t.Name + " MODIFY SETTING " + setting})
		}
	}
	if t.Policy != "default" {
		found = append(found, Weakness{Object: object, Setting: "storage_policy", Found: t.Policy, Wanted: "default",
			Why: "its disks are not known to honour fsync", Remedy: "use local disks"})
	}
	if !strings.Contains(t.Engine, "ReplacingMergeTree") {
		engine, _, _ := strings.Cut(t.Engine, " ")
		found = append(found, Weakness{Object: object, Setting: "engine", Found: engine, Wanted: "ReplacingMergeTree",
			Why: "a record that is delivered twice would be visible twice", Remedy: "let plumbline migrate create the table"})
	}
	return found
}

// rightsToRemove returns the privileges on our tables that this user should not have. It includes
// the tables of the shards' parts.
func (d *DB) rightsToRemove(ctx context.Context, live liveTables) ([]Weakness, error) {
	if only, err := d.onlyReadsAndInserts(ctx); err != nil || only {
		return nil, err
	}
	var names []string
	for _, table := range Tables {
		for _, name := range []string{table, table + localSuffix} {
			if _, exists := live[name]; exists {
				names = append(names, name)
			}
		}
	}
	var found []Weakness
	for _, right := range removers {
		on, err := d.grantedOn(ctx, right, names)
		if err != nil {
			return nil, err
		}
		if len(on) > 0 {
			found = append(found, Weakness{Object: "the user", Setting: "right to " + right, Found: "granted on " + strings.Join(on, ", "),
				Wanted: "granted on none", Why: "evidence is append-only", Remedy: "connect as a user with SELECT and INSERT alone"})
		}
	}
	return found, nil
}

// readOrInsert matches a line of SHOW GRANTS that grants nothing but SELECT and INSERT, or that
// revokes a part of such a grant. It does not match a role, whose privileges are not shown.
var readOrInsert = regexp.MustCompile(`^(GRANT|REVOKE) (SELECT|INSERT)(\([^()]*\))?(, (SELECT|INSERT)(\([^()]*\))?)* ON \S+ (TO|FROM) \S+$`)

// onlyReadsAndInserts reports whether this user has no other privilege than SELECT and INSERT, as
// the services' user should. It saves asking for each privilege on each table, hundreds of
// statements, whenever a service starts. It is false where the answer is not understood.
func (d *DB) onlyReadsAndInserts(ctx context.Context) (bool, error) {
	ctx, cancel := d.ReadContext(ctx)
	defer cancel()
	var grants []string
	rows, err := d.Query(ctx, "SHOW GRANTS")
	if err != nil {
		return false, fmt.Errorf("database: show the user's grants: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var grant string
		if err := rows.Scan(&grant); err != nil {
			return false, fmt.Errorf("database: show the user's grants: %w", err)
		}
		grants = append(grants, grant)
	}
	other := slices.ContainsFunc(grants, func(grant string) bool { return !readOrInsert.MatchString(grant) })
	return len(grants) > 0 && !other, rows.Err()
}

// grantedOn returns the tables on which this user has a privilege. It asks for the whole database
// first.
func (d *DB) grantedOn(ctx context.Context, right string, names []string) (on []string, err error) {
	if whole, err := d.granted(ctx, right, "*"); err != nil || whole {
		return names, err
	}
	for _, name := range names {
		granted, err := d.granted(ctx, right, name)
		if err != nil {
			return nil, err
		}
		if granted {
			on = append(on, name)
		}
	}
	return on, nil
}

// codeSyntaxError is ClickHouse's error code for a statement that it does not know.
const codeSyntaxError = 62

// granted reports whether this user has a privilege on a table, or on all tables of the database
// (*), as far as the server can answer.
// Servers before 24.9 cannot.
func (d *DB) granted(ctx context.Context, right, table string) (bool, error) {
	ctx, cancel := d.ReadContext(ctx)
	defer cancel()
	var granted uint8
	err := d.QueryRow(ctx, "CHECK GRANT "+right+" ON "+table).Scan(&granted)
	if exception, ok := errors.AsType[*clickhouse.Exception](err); ok && exception.Code == codeSyntaxError {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("database: check the rights on %s: %w", table, err)
	}
	return granted != 0, nil
}

// node is a server of a cluster, as the servers' own list describes it.
type node struct {
	Shard    uint32 `ch:"shard_num"`
	Weight   uint32 `ch:"shard_weight"`
	Replica  uint32 `ch:"replica_num"`
	Host     string `ch:"host_name"`
	Port     uint16 `ch:"port"`
	Internal uint8  `ch:"internal_replication"`
}

func (n node) address() string { return net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) }

// nodesAtOnce is how many servers are inspected in parallel.
const nodesAtOnce = 8

// inspectCluster inspects every server of the cluster. It uses the credentials of the DSN, and
// the addresses that the servers use for each other.
func (d *DB) inspectCluster(ctx context.Context) (Inspection, error) {
	nodes, err := d.nodes(ctx)
	if err != nil {
		return Inspection{}, err
	}
	if len(nodes) == 0 {
		return Inspection{Weaknesses: []Weakness{{Object: "cluster " + d.cfg.Cluster, Setting: "existence", Found: "missing", Wanted: "present",
			Why: "the servers of the tables are not known", Remedy: "correct --clickhouse-cluster, or <remote_servers> of the server's configuration"}}}, nil
	}
	found, failed := make([][]Weakness, len(nodes)), make([]error, len(nodes))
	var group errgroup.Group
	group.SetLimit(nodesAtOnce)
	for i := range nodes {
		group.Go(func() error {
			found[i], failed[i] = d.inspectNode(ctx, nodes[i], nodes)
			return nil
		})
	}
	_ = group.Wait() // failures are part of the result
	report := Inspection{Weaknesses: shardWeaknesses(d.cfg.Cluster, nodes)}
	for i := range nodes {
		if failed[i] != nil {
			report.Unknown = append(report.Unknown, fmt.Sprintf("server %s of cluster %s: %v", nodes[i].address(), d.cfg.Cluster, failed[i]))
			continue
		}
		report.Weaknesses = append(report.Weaknesses, found[i]...)
	}
	return report, nil
}

//go:embed sql/queries/cluster_nodes.sql
var queryClusterNodes string

func (d *DB) nodes(ctx context.Context) (nodes []node, err error) {
	for n, err := range Each[node](ctx, d, queryClusterNodes, clickhouse.Named("cluster", d.cfg.Cluster)) {
		if err != nil {
			return nil, fmt.Errorf("database: list the servers of cluster %s: %w", d.cfg.Cluster, err)
		}
		nodes = append(nodes, *n)
	}
	return nodes, nil
}

// shardWeaknesses returns the weaknesses in how the servers form shards.
func shardWeaknesses(cluster string, nodes []node) (found []Weakness) {
	for _, n := range nodes {
		object := fmt.Sprintf("shard %d of cluster %s", n.Shard, cluster)
		if n.Weight != 1 && n.Replica == 1 {
			found = append(found, Weakness{Object: object, Setting: "weight", Found: strconv.Itoa(int(n.Weight)), Wanted: "1",
				Why: "rows are spread by the number of shards", Remedy: "remove <weight> from <remote_servers> before there are rows"})
		}
		if n.Replica == 2 && n.Internal == 0 {
			found = append(found, Weakness{Object: object, Setting: "internal_replication", Found: "0", Wanted: "1",
				Why: "each replica would get the row separately, and the insert would wait for no quorum", Remedy: "set <internal_replication>true</internal_replication>"})
		}
	}
	return found
}

// inspectNode inspects one server.
func (d *DB) inspectNode(ctx context.Context, n node, nodes []node) (found []Weakness, err error) {
	options, err := d.cfg.options()
	if err != nil {
		return nil, err
	}
	options.Addr, options.DialTimeout = []string{n.address()}, pingTimeout
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	own := &DB{cfg: d.cfg, Conn: conn}
	known, err := own.nodes(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(known, nodes) {
		found = append(found, Weakness{Object: "cluster " + d.cfg.Cluster, Setting: "definition", Found: "another", Wanted: "the same on every server",
			Why: "rows would go to other shards, and copies of them would be visible", Remedy: "give all servers the same <remote_servers>"})
	}
	live, err := own.liveTables(ctx)
	if err != nil {
		return nil, err
	}
	tablesOver := layout{Cluster: Cluster{Name: d.cfg.Cluster}, database: options.Auth.Database, shards: int(nodes[len(nodes)-1].Shard)}
	replicated := slices.ContainsFunc(nodes, func(other node) bool { return other.Shard == n.Shard && other.Replica > 1 })
	for _, name := range Tables {
		found = append(found, live.weaknesses(name+localSuffix)...)
		found = append(found, tablesOver.weaknesses(live, name, replicated)...)
	}
	rights, err := own.rightsToRemove(ctx, live)
	found = append(found, rights...)
	for i := range found {
		found[i].Object += " on " + n.address()
	}
	return found, err
}

// weaknesses returns the weaknesses of a table over all shards, and of the engine of its part.
func (l layout) weaknesses(live liveTables, name string, replicated bool) (found []Weakness) {
	over, part := live[name], live[name+localSuffix]
	if want := l.distributed(name); over.Engine != want {
		found = append(found, Weakness{Object: "table " + name, Setting: "engine", Found: cmp.Or(over.Engine, "missing"), Wanted: want,
			Why: "rows could not be read, or copies of a row would go to different shards", Remedy: "let plumbline migrate --clickhouse-cluster create the table"})
	}
	if replicated && part.Name != "" && !strings.HasPrefix(part.Engine, "Replicated") {
		found = append(found, Weakness{Object: "table " + part.Name, Setting: "engine", Found: part.Engine, Wanted: "ReplicatedReplacingMergeTree",
			Why: "the replicas of the shard have different rows", Remedy: "let plumbline migrate --clickhouse-cluster create the table"})
	}
	return found
}
