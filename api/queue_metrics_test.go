package api

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// T63: nobody could see on a dashboard how many wait. The numbers are told by show, and by
// lane where it has some.
func TestT63DashboardsShowWhoWaits(t *testing.T) {
	t.Parallel()
	book := &showBook{}
	book.meet(domain.Show{ID: "plain", Queue: domain.DefaultQueue()})
	book.note(domain.Stats{ShowID: "plain", Epoch: 1, Version: 1, Waiting: 7, Active: 2, AdmittedLastMinute: 5})
	laned := domain.DefaultQueue()
	laned.Lanes = []domain.Lane{{Name: "fans", Weight: 3}}
	book.meet(domain.Show{ID: "laned", Queue: laned})
	book.note(domain.Stats{ShowID: "laned", Epoch: 1, Version: 1, Waiting: 5, Lanes: domain.LaneLines{{Weight: 1, Waiting: 4}, {Weight: 3, Waiting: 1}, {Weight: 2}}})
	book.meet(domain.Show{ID: "unheard", Queue: laned})
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(newQueueMetrics(book)))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP foyer_queue_active People inside or with a turn.
# TYPE foyer_queue_active gauge
foyer_queue_active{show_id="laned"} 0
foyer_queue_active{show_id="plain"} 2
# HELP foyer_queue_admitted_last_minute People let in during the last minute.
# TYPE foyer_queue_admitted_last_minute gauge
foyer_queue_admitted_last_minute{show_id="laned"} 0
foyer_queue_admitted_last_minute{show_id="plain"} 5
# HELP foyer_queue_waiting People waiting, by lane.
# TYPE foyer_queue_waiting gauge
foyer_queue_waiting{lane="fans",show_id="laned"} 1
foyer_queue_waiting{lane="ordinary",show_id="laned"} 4
foyer_queue_waiting{lane="ordinary",show_id="plain"} 7
`)))
}
