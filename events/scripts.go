package events

import (
	_ "embed" // the scripts below

	"github.com/redis/go-redis/v9"
)

// The atomic steps on streams. Each is described, with its results, in its file.
var (
	//go:embed scripts/own.lua
	ownSource string
	//go:embed scripts/claim.lua
	claimSource string
	//go:embed scripts/bury.lua
	burySource string
	//go:embed scripts/requeue.lua
	requeueSource string
	//go:embed scripts/leave.lua
	leaveSource string

	ownScript     = redis.NewScript(ownSource)
	claimScript   = redis.NewScript(claimSource)
	buryScript    = redis.NewScript(burySource)
	requeueScript = redis.NewScript(requeueSource)
	leaveScript   = redis.NewScript(leaveSource)
)

// What own and bury answer about an entry.
const (
	entryOwned   = 1
	entryGone    = 0
	entryAnother = -1
)
