package peers

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"foyer/bench"
	"foyer/domain"
)

// tasks is asynq's queue on the same Redis.
type tasks struct {
	w   *world
	opt asynq.RedisClientOpt
}

func asynqWorld(w *world) tasks { return tasks{w, asynq.RedisClientOpt{Addr: w.options.Addr}} }

// consume measures asynq with the same events as tasks with a JSON payload, which
// is its usual form.
func (q tasks) consume(name string, n int, work time.Duration, concurrency int) bench.Variant {
	return bench.Variant{Name: name, Run: func(b *testing.B) bench.Sample {
		q.fill(b, n)
		t := newTarget(n, work)
		server := asynq.NewServer(q.opt, asynq.Config{Concurrency: concurrency, LogLevel: asynq.FatalLevel})
		before := q.w.redisTime(b)
		meter := bench.StartMeter()
		require.NoError(b, server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
			var mark domain.ReadMark
			err := json.Unmarshal(task.Payload(), &mark)
			t.handle(mark)
			return err
		})))
		<-t.done
		wall, cpu := meter.Read()
		inRedis := q.w.redisTime(b) - before
		server.Shutdown()
		return rates(n, wall, cpu, inRedis)
	}}
}

func (q tasks) fill(b *testing.B, n int) {
	b.Helper()
	require.NoError(b, q.w.rdb.FlushDB(b.Context()).Err())
	client := asynq.NewClient(q.opt)
	defer client.Close()
	for i := range n {
		payload, err := json.Marshal(domain.ReadMark{RoomID: "room", PersonID: "person", UpTo: int64(i)})
		require.NoError(b, err)
		_, err = client.EnqueueContext(b.Context(), asynq.NewTask("read", payload))
		require.NoError(b, err)
	}
}
