package api

import (
	"fmt"
	"math"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// maxSeq is the largest number that a query may name.
const maxSeq = math.MaxInt64

// plainPath takes parts of a path that came percent-encoded for what they mean plain:
// somebody named ada@example.org may come either way.
func plainPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawPath == "" {
			return next(c) // decoded already
		}
		values := c.ParamValues()
		for i, value := range values {
			plain, err := url.PathUnescape(value)
			if err != nil {
				return invalid("path", "is not well encoded")
			}
			values[i] = plain
		}
		return next(c)
	}
}

// query reads parameters of a URL and gathers what is wrong with them.
type query struct{ problems []domain.Problem }

func (q *query) add(name, detail string) {
	q.problems = append(q.problems, domain.Problem{Field: name, Detail: detail})
}

// number reads a whole number between low and high; absent means the default.
func (q *query) number(c echo.Context, name string, absent, low, high int64) int64 {
	values := q.values(c, name)
	if len(values) == 0 {
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

// one reads a parameter that stands once; absent it is empty.
func (q *query) one(c echo.Context, name string) string {
	values := q.values(c, name)
	if len(values) > 1 {
		q.add(name, "must stand once")
	}
	return append(values, "")[0]
}

// values are those of one name. A query that cannot be read whole is refused: its
// readable half is not taken for all of it.
func (q *query) values(c echo.Context, name string) []string {
	all, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		q.add(name, "cannot be told: the query is not well encoded")
	}
	return all[name]
}

func (q *query) err() error {
	if len(q.problems) == 0 {
		return nil
	}
	return &domain.InvalidError{Problems: q.problems}
}
