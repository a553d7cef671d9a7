package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterSlots = 16384
	// topologyWithin bounds how long servers may take to find each other.
	topologyWithin = 30 * time.Second
)

// StartCluster starts a Redis Cluster of so many masters that one test owns.
func StartCluster(t testing.TB, masters int) []*RedisServer {
	t.Helper()
	nodes := make([]*RedisServer, masters)
	buses := make([]int, masters)
	for i := range nodes {
		bus, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		buses[i] = bus
		nodes[i] = StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "2000")
	}
	ctx := t.Context()
	for i, node := range nodes {
		rdb := node.Client(t)
		first, last := i*clusterSlots/masters, (i+1)*clusterSlots/masters-1
		if err := rdb.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			t.Fatalf("give slots to a cluster node: %v", err)
		}
		host, port, _ := strings.Cut(nodes[0].Addr, ":")
		if err := rdb.Do(ctx, "CLUSTER", "MEET", host, port, buses[0]).Err(); err != nil {
			t.Fatalf("introduce cluster nodes: %v", err)
		}
	}
	for _, node := range nodes {
		rdb := node.Client(t)
		Eventually(t, topologyWithin, "the cluster is up", func() bool {
			info := rdb.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", masters)) &&
				strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d", clusterSlots))
		})
	}
	return nodes
}

// Sentinel is a master and a replica, watched by one sentinel.
type Sentinel struct {
	Addr    string // of the sentinel
	Name    string // of the master
	Master  *RedisServer
	Replica *RedisServer
}

// StartSentinel starts a master, a replica and a sentinel that promotes the
// replica half a second after the master has gone silent.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s := &Sentinel{Name: "main", Master: StartRedis(t, "--appendonly", "yes")}
	host, port, _ := strings.Cut(s.Master.Addr, ":")
	s.Replica = StartRedis(t, "--replicaof", host+" "+port)
	replica := s.Replica.Client(t)
	Eventually(t, topologyWithin, "the replica follows its master", func() bool {
		return strings.Contains(replica.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	s.watch(t, host, port)
	return s
}

// watch starts the sentinel, whose settings live in a file that it rewrites.
func (s *Sentinel) watch(t testing.TB, host, port string) {
	t.Helper()
	own, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	settings := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 5000\n",
		own, dir, s.Name, host, port, s.Name, s.Name)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := program("redis-server", "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	p, err := start(path, []string{file, "--sentinel"}, nil, syscall.SIGKILL, filepath.Join(dir, "sentinel.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	s.Addr = "127.0.0.1:" + strconv.Itoa(own)
	asked := redis.NewSentinelClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = asked.Close() })
	Eventually(t, topologyWithin, "the sentinel knows the replica", func() bool {
		replicas, err := asked.Replicas(context.WithoutCancel(t.Context()), s.Name).Result()
		return err == nil && len(replicas) == 1
	})
}
