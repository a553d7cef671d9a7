package events

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type colour struct{}

// The context of a handler carries the values of the one it was made in and does
// not end with it; when it ends, so do those made in it, all for the first cause.
func TestReceiptIsAContext(t *testing.T) {
	t.Parallel()
	outer, stop := context.WithCancel(context.WithValue(t.Context(), colour{}, "red"))
	r := &receipt{within: outer, sent: time.Now(), sub: &subscription{limits: Limits{Timeout: time.Hour}}}
	stop()
	require.NoError(t, r.Err())
	require.NoError(t, context.Cause(r))
	require.Equal(t, "red", r.Value(colour{}))
	require.Same(t, r, receiptOf(context.WithValue(r, colour{}, "blue")))
	inner, cancel := context.WithTimeout(r, time.Minute)
	defer cancel()
	within, cancelWithin := context.WithTimeout(r, 2*time.Hour)
	defer cancelWithin()
	deadline, _ := within.Deadline()
	require.Equal(t, r.sent.Add(time.Hour), deadline)
	require.NoError(t, inner.Err())
	first := errors.New("first")
	r.end(first)
	r.end(errors.New("second"))
	for _, ctx := range []context.Context{r, inner, within} {
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(ctx), first)
		require.Equal(t, "red", ctx.Value(colour{}))
	}
}

// Who first asks after the end learns of it too.
func TestReceiptThatHasEndedSaysSo(t *testing.T) {
	t.Parallel()
	cause := errors.New("over")
	for name, ask := range map[string]func(r *receipt){
		"cause": func(r *receipt) { require.ErrorIs(t, context.Cause(r), cause) },
		"error": func(r *receipt) { require.ErrorIs(t, r.Err(), context.Canceled) },
		"done":  func(r *receipt) { <-r.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receipt{within: t.Context()}
			r.end(cause)
			ask(r)
			require.ErrorIs(t, context.Cause(r), cause)
		})
	}
}

// What a handler has left behind ends when the handler returns.
func TestContextEndsWithItsHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book(1)
	left := make(chan context.Context, 1)
	w.work(Handlers{BookSeats: func(ctx context.Context, _ Delivery, _ BookSeats) error {
		left <- ctx
		return nil
	}})
	ctx := <-left
	<-ctx.Done()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	w.settled()
}
