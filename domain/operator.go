package domain

import "time"

// Actions of operators, as they are written down.
const (
	ActionCreate = "create"
	ActionChange = "change" // settings, times, message
	ActionPause  = "pause"
	ActionResume = "resume"
	ActionClose  = "close"
	ActionReopen = "reopen"
	ActionAdmit  = "admit"  // let people in now
	ActionRemove = "remove" // end one person's place
	ActionReset  = "reset"  // end all places, under a new epoch

	ActionMintCodes = "mint-codes" // make join codes for a lane

	ActionRequeueLetter = "requeue-dead-letter"
	ActionDropLetter    = "drop-dead-letter"
)

// LetterActions are those that are done to dead letters.
func LetterActions() []string { return []string{ActionRequeueLetter, ActionDropLetter} }

// OperatorAction is something that an operator did to a show, or to a dead letter.
type OperatorAction struct {
	ID       string
	ShowID   ShowID // empty: a dead letter that names no show
	Operator PersonID
	Action   string
	Detail   string     // JSON: what was asked for
	Outcome  string     // JSON: what came of it; empty until it is done
	At       time.Time  // by the database
	DoneAt   *time.Time // nil: under way, or died half-way
}

// Limits of a list of actions.
const (
	DefaultActionPage = 50
	MaxActionPage     = 200
	// MaxAdmitNow bounds the people that an operator lets in at once.
	MaxAdmitNow = 10_000
	// MaxCodesAtOnce bounds the join codes that an operator has made at once.
	MaxCodesAtOnce = 1000
)
