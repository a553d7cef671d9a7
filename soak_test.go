//go:build soak

package foyer_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// TestSoak breaks one part after the other, in any order, for as long as SOAK says,
// with a crowd buying all the time. Every few minutes a new show opens, and the last
// one must be in order.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SOAK"))
	require.NoError(t, err, "SOAK must be a duration, such as 5m")
	redis := testenv.StartRedis(t, "--appendonly", "yes", "--appendfsync", "everysec")
	postgres := testenv.StartPostgres(t)
	toRedis, toPostgres := testenv.StartProxy(t, redis.Addr), testenv.StartProxy(t, postgres.Addr)
	d := deployOn(t, servers{
		redis: redis, redisURL: "redis://" + toRedis.Addr + "/0", dbURL: strings.Replace(postgres.URL, postgres.Addr, toPostgres.Addr, 1),
	}, 2, 2)
	faults := map[string]func(){
		"a worker is killed":     func() { i := rand.IntN(2); d.workers[i].kill(); d.workers[i] = d.startWorker(t) },
		"a worker is deployed":   func() { i := rand.IntN(2); old := d.workers[i]; d.workers[i] = d.startWorker(t); old.terminate(t) },
		"redis is killed":        func() { redis.Kill(); redis.Restart() },
		"redis is flushed":       func() { require.NoError(t, redis.Client(t).FlushAll(t.Context()).Err()) },
		"postgres is killed":     func() { postgres.Kill(); postgres.Restart() },
		"redis goes silent":      toRedis.Silence,
		"postgres goes silent":   toPostgres.Silence,
		"connections are cut":    func() { toRedis.Cut(); toPostgres.Cut() },
		"the network gets slow":  func() { toRedis.Delay(20 * time.Millisecond) },
		"the network gets quick": func() { toRedis.Delay(0) },
	}
	for end := time.Now().Add(length); time.Now().Before(end); {
		c := d.openTo(t, 200)
		for round := time.Now().Add(2 * time.Minute); time.Now().Before(end) && time.Now().Before(round); {
			for what, fault := range faults { // in any order
				t.Log(what)
				fault()
				c.flows("sales after "+what, 10)
				break
			}
		}
		toRedis.Delay(0)
		c.goHome()
		t.Logf("%d bookings were accepted and %d confirmed", len(c.accepted), c.confirmed())
	}
}
