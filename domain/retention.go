package domain

import "time"

const (
	// DeadLetterRetention is how long a dead letter waits for an operator.
	DeadLetterRetention = 30 * 24 * time.Hour
	// MinCommandRetention is the least time for which it is remembered that a command
	// has had its effect: longer than the command can come back, since what is given up
	// on can be requeued for as long as it waits.
	MinCommandRetention = DeadLetterRetention + 24*time.Hour
	// MaxCommandRetention bounds it, so that what is never looked at does not grow for ever.
	MaxCommandRetention = 10 * 365 * 24 * time.Hour
)
