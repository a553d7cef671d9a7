package api

import (
	"fmt"
	"math"
	"strconv"

	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// maxSeq is the largest number that a query may name.
const maxSeq = math.MaxInt64

// query reads parameters of a URL and gathers what is wrong with them.
type query struct{ problems []domain.Problem }

func (q *query) add(name, detail string) {
	q.problems = append(q.problems, domain.Problem{Field: name, Detail: detail})
}

// number reads a whole number between low and high; absent means the default.
func (q *query) number(c echo.Context, name string, absent, low, high int64) int64 {
	values, given := c.QueryParams()[name]
	if !given {
		return absent
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	switch {
	case len(values) > 1:
		q.add(name, "must stand once")
	case err != nil || n < low || n > high:
		q.add(name, fmt.Sprintf("must be a whole number from %d to %d", low, high))
	}
	return n
}

func (q *query) err() error {
	if len(q.problems) == 0 {
		return nil
	}
	return &domain.InvalidError{Problems: q.problems}
}
