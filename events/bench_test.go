package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// BenchmarkConsume measures commands through the whole way from the stream to
// the acknowledgement, with a handler that does nothing and one that waits 2 ms
// as a database would. An operation is one command.
func BenchmarkConsume(b *testing.B) {
	for name, wait := range map[string]time.Duration{"noop": 0, "2ms": 2 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			options, err := redis.ParseURL(testenv.StartRedis(b).URL)
			require.NoError(b, err)
			options.MaxRetries = -1
			rdb := redis.NewClient(options)
			defer rdb.Close()
			fill(b, rdb, b.N)
			var handled atomic.Int64
			done := make(chan struct{})
			consumer, err := NewConsumer(ConsumerConfig{
				Redis:  func(string) redis.UniversalClient { return redis.NewClient(options) },
				Groups: []string{GroupAdmission},
				Log:    slog.New(slog.DiscardHandler),
				Limits: map[string]Limits{GroupAdmission: {InFlight: 256}},
			}, Handlers{AdmitShow: func(ctx context.Context, _ Delivery, _ AdmitShow) error {
				if handled.Add(1) == int64(b.N) {
					close(done)
				}
				if wait > 0 {
					return pause(ctx, wait)
				}
				return nil
			}})
			require.NoError(b, err)
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			b.ResetTimer()
			go func() { ended <- consumer.Run(ctx) }()
			<-done
			b.StopTimer()
			cancel()
			require.NoError(b, <-ended)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}

// fill puts n commands on the admission stream.
func fill(b *testing.B, rdb *redis.Client, n int) {
	b.Helper()
	payload, err := json.Marshal(AdmitShow{ShowID: "t-show", Reason: ReasonFreed})
	require.NoError(b, err)
	const batch = 1000
	for from := 0; from < n; from += batch {
		_, err := rdb.Pipelined(b.Context(), func(pipe redis.Pipeliner) error {
			for range min(batch, n-from) {
				pipe.XAdd(b.Context(), &redis.XAddArgs{Stream: StreamAdmission, Values: []any{
					fieldID, "c", fieldType, typeAdmitShow, fieldVersion, wireVersion, fieldPayload, payload,
				}})
			}
			return nil
		})
		require.NoError(b, err)
	}
}
