package domain

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Price is an amount of the shop's currency in hundredths. On the wire it is a
// JSON number with at most two decimals (2550 is 25.5), so sums stay exact.
type Price int64

// MaxPrice bounds the price of one seat, so that no sum of seats overflows.
const MaxPrice Price = 1e11

// MarshalJSON writes the shortest decimal number: 25, 25.5 or 25.05.
func (p Price) MarshalJSON() ([]byte, error) {
	text := fmt.Sprintf("%d.%02d", p/100, p%100)
	return []byte(strings.TrimSuffix(strings.TrimRight(text, "0"), ".")), nil
}

// UnmarshalJSON reads a JSON number of at most two decimals. A negative amount
// is read as it is, for validation to refuse with the field's name.
func (p *Price) UnmarshalJSON(b []byte) error {
	amount, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("price must be a number, not %q", b)
	}
	hundredths := math.Round(amount * 100)
	if math.Abs(hundredths) > float64(MaxPrice) || math.Abs(amount*100-hundredths) > 1e-6 {
		return fmt.Errorf("price %s must have at most two decimals and be at most %d", b, MaxPrice/100)
	}
	*p = Price(hundredths)
	return nil
}
