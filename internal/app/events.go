package app

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/events"
)

// openEvents makes the bus, the sender of commands and the keeper of dead
// letters. Commands are sent by a client that never repeats one by itself.
func (a *App) openEvents() error {
	sender, err := events.NewCommands(a.client(a.redis.once), a.log)
	if err != nil {
		return fmt.Errorf("make command sender: %w", err)
	}
	a.sender = sender
	a.bus = events.NewBus(a.commands, events.BusConfig{Partitions: a.config.NotifyPartitions, Log: a.log})
	a.deadLetters = events.NewDeadLetters(a.commands)
	return nil
}

// A silent worker's commands are looked for a few times within the silence that
// counts, and at least every few seconds.
const (
	reclaimSweeps   = 6
	maxReclaimSweep = 5 * time.Second
)

// newConsumer makes the consumer of the role's groups, with clients of its own.
func (a *App) newConsumer(handlers events.Handlers) (*events.Consumer, error) {
	consumer, err := events.NewConsumer(events.ConsumerConfig{
		Redis: func(role string) redis.UniversalClient {
			if role == events.RoleReader {
				return a.redis.once()
			}
			return a.redis.commands()
		},
		Groups: a.config.Groups, Consumers: a.config.Consumers, Log: a.log, Metrics: a.metrics,
		Timing: events.Timing{Idle: a.config.ReclaimIdle, Sweep: min(a.config.ReclaimIdle/reclaimSweeps, maxReclaimSweep)},
	}, handlers)
	if err != nil {
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	return consumer, nil
}
