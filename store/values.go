package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"foyer/domain"
)

// instant reads a point in time as either database returns it: UTC, exact to the
// microsecond, and nil for NULL.
type instant struct{ at *time.Time }

// Scan takes a time, or whole microseconds since 1970.
func (i *instant) Scan(value any) error {
	var at time.Time
	switch v := value.(type) {
	case nil:
		i.at = nil
		return nil
	case time.Time:
		at = v.UTC()
	case int64:
		at = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("an instant cannot be read from %T", value)
	}
	i.at = &at
	return nil
}

// time is the instant where the column is never NULL.
func (i instant) time() time.Time {
	if i.at == nil {
		return time.Time{}
	}
	return *i.at
}

// encode writes a value as JSON text; the types here always marshal.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// inOrder returns seat ids sorted and each once, as they are stored, so that whoever
// books the same seats claims them in the same order. No seats are nil.
func inOrder(seats []domain.SeatID) []domain.SeatID {
	return slices.Compact(slices.Sorted(slices.Values(seats)))
}

// encodeSeats writes seat ids in order.
func encodeSeats(seats []domain.SeatID) string {
	sorted := inOrder(seats)
	if sorted == nil {
		return "[]"
	}
	return encode(sorted)
}

// decodeSeats reads what encodeSeats wrote; no seats are nil.
func decodeSeats(text string) ([]domain.SeatID, error) {
	if text == "[]" {
		return nil, nil
	}
	var seats []domain.SeatID
	err := json.Unmarshal([]byte(text), &seats)
	return seats, err
}

// field is a text to be stored, with the name that its owner knows it by.
type field struct{ name, value string }

// checkText refuses what PostgreSQL cannot hold as text: a zero character or bytes
// that are not UTF-8. SQLite would hold it, and bring it back differently.
func checkText(fields ...field) error {
	var problems []domain.Problem
	for _, f := range fields {
		if !utf8.ValidString(f.value) || strings.ContainsRune(f.value, 0) {
			problems = append(problems, domain.Problem{Field: f.name, Detail: "must be UTF-8 text without zero characters"})
		}
	}
	if len(problems) > 0 {
		return &domain.InvalidError{Problems: problems}
	}
	return nil
}

// bind makes arguments fit a database: instants become what at says, and text that
// not every database can hold is refused before it spoils a transaction.
func bind(args []any, at func(time.Time) any) ([]any, error) {
	bound := slices.Clone(args)
	for i, arg := range args {
		switch v := arg.(type) {
		case time.Time:
			bound[i] = at(v)
		case *time.Time:
			if bound[i] = nil; v != nil {
				bound[i] = at(*v)
			}
		default:
			if r := reflect.ValueOf(arg); r.Kind() == reflect.String { // ids of all kinds
				if err := checkText(field{"text", r.String()}); err != nil {
					return nil, err
				}
			}
		}
	}
	return bound, nil
}

// texts converts ids of any kind into a column's values.
func texts[S ~string](values []S) []string {
	plain := make([]string, len(values))
	for i, value := range values {
		plain[i] = string(value)
	}
	return plain
}
