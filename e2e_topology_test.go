package foyer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// On a Redis Cluster every show lives in one slot, and shows spread over the
// masters; notifications are split into partitions that live on one node each.
// Whoever is admitted hears it on another process's socket all the same.
func TestE2ECluster(t *testing.T) {
	addresses := []string{}
	for _, node := range testenv.StartCluster(t, 3) {
		addresses = append(addresses, node.Addr)
	}
	d := deployOn(t, servers{redisURL: "redis://" + strings.Join(addresses, ",")}, 2, 1, "FOYER_NOTIFY_PARTITIONS=8")
	for range 6 { // enough shows for every master to have one, but for bad luck
		d.sellWhileAnotherListens(t)
	}
}

// sellWhileAnotherListens sells to one person while the next waits on another process.
func (d *deployment) sellWhileAnotherListens(t *testing.T) {
	t.Helper()
	show := d.putOnSale(t, func(s *client.NewShow) {
		queue := domain.DefaultQueue()
		queue.MaxActive = 1
		s.Queue, s.Seating = &queue, seating(1, 4)
	})
	first, second := d.as(t, 0, "first"), d.as(t, 1, "second")
	require.NoError(t, enter(t.Context(), first, show))
	live := second.Live(t.Context(), client.LiveOptions{})
	defer live.Close()
	require.NoError(t, live.Join(t.Context(), show))
	hold, err := first.HoldBest(t.Context(), show, 2, "")
	require.NoError(t, err)
	booking, err := first.Book(t.Context(), show, hold.HoldID, "key-"+string(show))
	require.NoError(t, err)
	booking, err = first.WaitBooking(t.Context(), booking.BookingID)
	require.NoError(t, err)
	require.Equal(t, domain.BookingConfirmed, booking.Status)
	require.NoError(t, hear(t, live, domain.StatusAdmitted))
	d.requireConsistent(t, show, 2)
}

// R21, R22: after a Sentinel switched masters, nothing was delivered any more and
// health stayed green. Here the master dies in mid-sale; people go on with the
// promoted replica, and what was sold before stays sold.
func TestE2ESentinelFailover(t *testing.T) {
	sentinel := testenv.StartSentinel(t)
	d := deployOn(t, servers{redisURL: "redis+sentinel://" + sentinel.Addr + "/" + sentinel.Name}, 2, 1)
	show := d.putOnSale(t, func(s *client.NewShow) { s.Seating = seating(1, 6) })
	_, err := buyOne(t, d.as(t, 0, "before"), show, 0)
	require.NoError(t, err)
	live := d.as(t, 1, "listener").Live(t.Context(), client.LiveOptions{})
	defer live.Close()

	sentinel.Master.Kill()

	testenv.Eventually(t, 60*time.Second, "a booking on the promoted master", func() bool {
		booking, err := buyOne(t, d.as(t, 0, "after"), show, 1)
		return err == nil && booking.Status == domain.BookingConfirmed
	})
	require.NoError(t, live.Join(t.Context(), show))
	require.NoError(t, hear(t, live, domain.StatusAdmitted), "the socket hears again")
	testenv.Eventually(t, 30*time.Second, "every process is ready", func() bool {
		return d.as(t, 0, "x").Ready(t.Context()) == nil && d.as(t, 1, "x").Ready(t.Context()) == nil
	})
	d.requireConsistent(t, show, 2)
}
