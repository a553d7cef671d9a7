package domain

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func laned(lanes ...Lane) QueueSettings {
	queue := DefaultQueue()
	queue.Lanes = lanes
	return queue
}

func TestLanesAreChecked(t *testing.T) {
	fields := func(queue QueueSettings) []string {
		show := Show{ID: "s", Title: "S", OpensAt: time.Now(), Queue: queue, Seating: DefaultSeating()}
		var names []string
		if invalid, ok := errors.AsType[*InvalidError](show.Validate()); ok {
			for _, p := range invalid.Problems {
				names = append(names, p.Field)
			}
		}
		return names
	}
	require.Empty(t, fields(laned(Lane{"fans", 1}, Lane{"press", 100})))
	require.Equal(t, []string{"queue.lanes[1].name"}, fields(laned(Lane{"fans", 1}, Lane{"fans", 1})))
	require.Equal(t, []string{"queue.lanes[0].name", "queue.lanes[0].weight"}, fields(laned(Lane{"Fans!", 101})))
	require.Equal(t, []string{"queue.lanes"}, fields(laned(Lane{"a", 1}, Lane{"b", 1}, Lane{"c", 1}, Lane{"d", 1}, Lane{"e", 1}, Lane{"f", 1}, Lane{"g", 1}, Lane{"h", 1}, Lane{"i", 1})))
	require.Equal(t, []string{"queue.lanes[0].name"}, fields(laned(Lane{OrdinaryName, 1})))
	heavy := laned()
	heavy.OrdinaryWeight = 101
	require.Equal(t, []string{"queue.ordinaryWeight"}, fields(heavy))
}

// People may stand in a lane: it may weigh more, and others may come behind it, but it is
// not taken from under them.
func TestLanesStay(t *testing.T) {
	before := laned(Lane{"fans", 1}, Lane{"press", 2})
	require.NoError(t, laned(Lane{"fans", 9}, Lane{"press", 2}, Lane{"late", 1}).KeepsLanes(before))
	for _, after := range []QueueSettings{laned(), laned(Lane{"fans", 1}), laned(Lane{"press", 2}, Lane{"fans", 1}), laned(Lane{"fan", 1}, Lane{"press", 2})} {
		require.Error(t, after.KeepsLanes(before))
	}
}

func TestTurnsOfARank(t *testing.T) {
	stats := Stats{Waiting: 130, Lanes: LaneLines{{Weight: 1, Waiting: 100}, {Weight: 3, Waiting: 30}}}
	require.EqualValues(t, 10+30, stats.Turns(0, 10), "three for each of ours, as long as there are any")
	require.EqualValues(t, 4, stats.Turns(0, 1))
	require.EqualValues(t, 30+10, stats.Turns(1, 30))
	require.EqualValues(t, 7, Stats{Waiting: 9}.Turns(0, 7), "no lanes")
	require.EqualValues(t, 0, stats.Turns(1, 0))
}

func TestLanesOnTheWire(t *testing.T) {
	text, err := json.Marshal(Stats{})
	require.NoError(t, err)
	require.NotContains(t, string(text), "lanes")
	stats := Stats{Lanes: LaneLines{{Weight: 1, Waiting: 7}, {Weight: 3}}}
	text, err = json.Marshal(stats)
	require.NoError(t, err)
	require.Contains(t, string(text), `"lanes":[{"weight":1,"waiting":7},{"weight":3,"waiting":0}]`)
	var read Stats
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, stats, read)
	require.Error(t, json.Unmarshal([]byte(`{"lanes":[{},{},{},{},{},{},{},{},{},{}]}`), &read))

	knots := RankKnots{Waiting: 2, Scores: []int64{3, 9}, Lanes: []RankKnots{{}, {Waiting: 1, Scores: []int64{5}}}}
	text, err = json.Marshal(knots)
	require.NoError(t, err)
	var back RankKnots
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, knots, back)
	require.EqualValues(t, 1, back.Lane(2).Rank(5))
	require.Zero(t, back.Lane(3).Rank(5))
}
