package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/internal/operate"
)

// mintCodes makes join codes for a lane of a show.
func (s *Server) mintCodes(c echo.Context, who Identity) error {
	var body struct {
		Lane   string           `json:"lane"`
		Count  field[int]       `json:"count"`
		Person domain.PersonID  `json:"person"`
		Uses   int              `json:"uses"`
		Until  field[time.Time] `json:"until"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	order := operate.CodeOrder{Count: 1, Code: domain.JoinCode{Lane: body.Lane, Person: body.Person, Uses: body.Uses}}
	var q query
	set(&q, "count", body.Count, &order.Count)
	setTime(&q, "until", body.Until, &order.Code.Until)
	if order.Count < 1 || order.Count > domain.MaxCodesAtOnce {
		q.add("count", fmt.Sprintf("must be between 1 and %d", domain.MaxCodesAtOnce))
	}
	if err := q.err(); err != nil {
		return err
	}
	id := showParam(c)
	if !id.Valid() {
		return domain.ErrShowNotFound
	}
	minted, err := s.desk.MintCodes(c.Request().Context(), who.Person, id, s.admissions.codes, order)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string][]string{"codes": minted})
}
