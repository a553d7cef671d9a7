package pass

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// getJSON reads a document of at most limit bytes.
func getJSON(ctx context.Context, client *http.Client, address string, limit int64, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered status %d", request.URL.Redacted(), response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, limit)).Decode(into); err != nil {
		return fmt.Errorf("understand the answer of %s: %w", request.URL.Redacted(), err)
	}
	return nil
}

// flight lets callers who need the same reading at the same time share one.
type flight struct {
	mu   sync.Mutex
	done chan struct{} // closed when the reading under way has ended; nil: none is
}

// do returns when a reading has ended that was under way after do began. The caller
// who starts it carries it out, and the end of that caller's own request must not
// break it off for the others. The error is only of the caller's context.
func (f *flight) do(ctx context.Context, read func(context.Context)) error {
	f.mu.Lock()
	if done := f.done; done != nil {
		f.mu.Unlock()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan struct{})
	f.done = done
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.done = nil
		f.mu.Unlock()
		close(done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	read(ctx)
	return nil
}
