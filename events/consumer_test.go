package events

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command published reaches its handler, once when nothing fails, and the
// stream is empty in the end.
func TestThousandsOfCommandsRunOnceEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const commands = 5000
	ids := w.book(commands / 2) // before anybody consumes
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, c BookSeats) error {
		assert.Equal(t, booking(d.CommandID), c.Booking)
		assert.Equal(t, 1, d.Attempt)
		ran.add(d.CommandID)
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Consumers = 3 })
	ids = append(ids, w.book(commands/2)...)
	w.eventually("all have run", func() bool { return ran.distinct() == commands })
	w.settled()
	for _, id := range ids {
		require.Equal(t, 1, ran.of(id))
	}
	w.eventually("the stream is trimmed", func() bool { return w.rdb.XLen(t.Context(), StreamBooking).Val() == 0 })
}
