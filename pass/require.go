package pass

import (
	"errors"
	"net/http"
)

// Where a request carries its pass: in the header, else in the cookie. Never in the
// address, which ends up in logs and in the hands of whoever is sent a link.
const (
	Header = "Foyer-Pass"
	Cookie = "foyer-pass"
)

// FromRequest checks the pass that a request carries; errors are those of Verify.
func (v *Verifier) FromRequest(r *http.Request) (Pass, error) {
	token := ""
	if values := r.Header.Values(Header); len(values) > 0 {
		if len(values) > 1 {
			return Pass{}, ErrInvalid
		}
		token = values[0]
	} else if cookie, err := r.Cookie(Cookie); err == nil {
		token = cookie.Value
	}
	return v.Verify(r.Context(), token)
}

// Require lets only requests with a valid pass through to next, which finds it with
// FromContext. Others are answered 403, and 503 while passes cannot be checked; the
// answer is the same whatever is wrong with a pass.
func (v *Verifier) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := v.FromRequest(r)
		if err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), p)))
	})
}

// Status is the HTTP status of an error of Verify.
func Status(err error) int {
	if errors.Is(err, ErrUnavailable) {
		return http.StatusServiceUnavailable
	}
	return http.StatusForbidden
}

// Refusal is what to tell somebody whose pass was refused with a status.
func Refusal(status int) string {
	if status == http.StatusServiceUnavailable {
		return "Admission passes cannot be checked now. Try again in a moment."
	}
	return "A valid admission pass is needed."
}

func refuse(w http.ResponseWriter, err error) {
	status := Status(err)
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	http.Error(w, Refusal(status), status)
}
