package store

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"
)

var queryClusterNodes = mustQuery("cluster_nodes")

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
func (s *Store) inspectCluster(ctx context.Context) (Inspection, error) {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return Inspection{}, err
	}
	if len(nodes) == 0 {
		return Inspection{Weaknesses: []Weakness{{Object: "cluster " + s.cfg.Cluster, Setting: "existence", Found: "missing", Wanted: "present",
			Why: "the servers of the tables are not known", Remedy: "correct --clickhouse-cluster, or <remote_servers> of the server's configuration"}}}, nil
	}
	found, failed := make([][]Weakness, len(nodes)), make([]error, len(nodes))
	var group errgroup.Group
	group.SetLimit(nodesAtOnce)
	for i := range nodes {
		group.Go(func() error {
			found[i], failed[i] = s.inspectNode(ctx, nodes[i], nodes)
			return nil
		})
	}
	_ = group.Wait() // failures are part of the result
	report := Inspection{Weaknesses: shardWeaknesses(s.cfg.Cluster, nodes)}
	for i := range nodes {
		if failed[i] != nil {
			report.Unknown = append(report.Unknown, fmt.Sprintf("server %s of cluster %s: %v", nodes[i].address(), s.cfg.Cluster, failed[i]))
			continue
		}
		report.Weaknesses = append(report.Weaknesses, found[i]...)
	}
	return report, nil
}

func (s *Store) nodes(ctx context.Context) (nodes []node, err error) {
	for n, err := range eachRow[node](ctx, s, queryClusterNodes, clickhouse.Named("cluster", s.cfg.Cluster)) {
		if err != nil {
			return nil, fmt.Errorf("store: list the servers of cluster %s: %w", s.cfg.Cluster, err)
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
				Why: "a row would be sent to each replica, and no quorum waited for", Remedy: "set <internal_replication>true</internal_replication>"})
		}
	}
	return found
}

// inspectNode inspects one server.
func (s *Store) inspectNode(ctx context.Context, n node, nodes []node) (found []Weakness, err error) {
	options, err := s.cfg.options()
	if err != nil {
		return nil, err
	}
	options.Addr, options.DialTimeout = []string{n.address()}, pingTimeout
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	own := &Store{cfg: s.cfg, conn: conn}
	known, err := own.nodes(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(known, nodes) {
		found = append(found, Weakness{Object: "cluster " + s.cfg.Cluster, Setting: "definition", Found: "another", Wanted: "the same on every server",
			Why: "rows would go to other shards, and copies of them would show", Remedy: "give all servers the same <remote_servers>"})
	}
	live, err := own.liveTables(ctx)
	if err != nil {
		return nil, err
	}
	tablesOver := layout{Cluster: Cluster{Name: s.cfg.Cluster}, database: options.Auth.Database, shards: int(nodes[len(nodes)-1].Shard)}
	replicated := slices.ContainsFunc(nodes, func(other node) bool { return other.Shard == n.Shard && other.Replica > 1 })
	for _, name := range tables {
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
			Why: "rows would not be read, or go to other shards than copies of them", Remedy: "let plumbline migrate --clickhouse-cluster make the table"})
	}
	if replicated && part.Name != "" && !strings.HasPrefix(part.Engine, "Replicated") {
		found = append(found, Weakness{Object: "table " + part.Name, Setting: "engine", Found: part.Engine, Wanted: "ReplicatedReplacingMergeTree",
			Why: "the replicas of the shard have different rows", Remedy: "let plumbline migrate --clickhouse-cluster make the table"})
	}
	return found
}
