package foyer_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// browser starts one headless Chromium and closes it at the end.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testenv.Browser(t)), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1100, 1400),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-gpu", true))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	_, err := chromedp.Run(ctx, chromedp.Navigate("about:blank"))
	require.NoError(t, err)
	return ctx
}

// visitor is one person with a browser profile of their own.
type visitor struct {
	t   *testing.T
	ctx context.Context
}

func visit(t *testing.T, browser context.Context, page string) *visitor {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	v := &visitor{t: t, ctx: ctx}
	_, err := chromedp.Run(ctx, chromedp.Navigate(page)) // without a time limit: the first run's context is the tab's
	require.NoError(t, err)
	return v
}

// do is what a person does on the page. On failure it says what the page showed.
func do[T any](v *visitor, what string, action chromedp.Action[T]) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, 30*time.Second)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		look, stop := context.WithTimeout(v.ctx, 5*time.Second)
		defer stop()
		shown, _ := chromedp.Run(look, chromedp.Text(chromedp.CSS("body")))
		require.FailNow(v.t, "the page did not let a person "+what, "%v\n%s", err, shown)
	}
	return result
}

func (v *visitor) signIn(name string) {
	v.t.Helper()
	v.sees("#sign-in-name")
	do(v, "type a name", chromedp.SendKeys(chromedp.CSS("#sign-in-name"), name))
	v.click("#sign-in")
}

func (v *visitor) click(selector string) {
	v.t.Helper()
	v.sees(selector)
	do(v, "click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// sees waits until the page shows a state.
func (v *visitor) sees(selector string) {
	v.t.Helper()
	do(v, "see "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
}

func (v *visitor) text(selector string) string {
	v.t.Helper()
	return do(v, "read "+selector, chromedp.Text(chromedp.CSS(selector)))
}

// The whole way in a browser, on nothing but embedded defaults: join, admitted,
// claim, hold, book, CONFIRMED on screen. Two more people see their rank fall,
// and the next is admitted within a second of the first one's booking.
func TestE2EBrowserWalksTheWholeWay(t *testing.T) {
	dev := start(t, []string{"FOYER_REDIS_URL=", "FOYER_DATABASE_URL=", "FOYER_HTTP_ADDR=127.0.0.1:0"}, "foyer: listening on ", "dev")
	operator, err := client.New(dev.url())
	require.NoError(t, err)
	token, err := operator.DevToken(t.Context(), "operator", "Op", "operator")
	require.NoError(t, err)
	queue := domain.DefaultQueue()
	queue.MaxActive = 1
	show, err := operator.As(token).CreateShow(t.Context(), client.NewShow{ID: testenv.ShowID(t), Title: "One at a time", Queue: &queue, Seating: seating(3, 8)})
	require.NoError(t, err)
	page := dev.url() + "/show.html?show=" + url.QueryEscape(string(show.ID))

	chromium := browser(t)
	ada, bob, cyd := visit(t, chromium, page), visit(t, chromium, page), visit(t, chromium, page)
	ada.signIn("Ada")
	ada.click("#join")
	ada.sees(`#status[data-status="ADMITTED"]`)
	require.Regexp(t, `\d`, ada.text("#claim-countdown"))
	for i, waiter := range []*visitor{bob, cyd} {
		waiter.signIn([]string{"Bob", "Cyd"}[i])
		waiter.click("#join")
		waiter.sees(`#status[data-status="WAITING"]`)
		require.Equal(t, fmt.Sprint(i+1), waiter.text("#rank"))
	}
	ada.click("#claim")
	ada.sees(`#status[data-status="ACTIVE"]`)
	ada.click(`[data-seat="A-2-4"]`)
	ada.click(`[data-seat="A-2-5"]`)
	ada.click("#hold")
	ada.sees("#hold-countdown")
	ada.click("#book")
	ada.sees(`#booking-status[data-status="CONFIRMED"]`)
	confirmed := time.Now()
	bob.sees(`#status[data-status="ADMITTED"]`)
	require.Less(t, time.Since(confirmed), time.Second, "a freed slot is given on at once")
	do(cyd, "see the rank fall", chromedp.Poll[bool](`document.querySelector("#rank").textContent === "1"`))

	do(bob, "give a sign of life", chromedp.KeyEvent("a")) // no button is needed
	bob.sees(`#status[data-status="ACTIVE"]`)
	bob.sees(`[data-seat="A-2-4"][data-state="SOLD"]`)
	bob.click("#best")
	bob.click("#book")
	bob.sees(`#booking-status[data-status="CONFIRMED"]`)
	cyd.sees(`#status[data-status="ADMITTED"]`)
	cyd.click("#leave")
	dev.terminate(t)
}

// A show with a lane, by its pages: an operator adds the lane and has a code made, and
// somebody joins with it. A wrong code is said to be wrong, at once, and joins nobody.
func TestE2EBrowserJoinsALaneWithACode(t *testing.T) {
	dev := start(t, []string{"FOYER_REDIS_URL=", "FOYER_DATABASE_URL=", "FOYER_HTTP_ADDR=127.0.0.1:0"}, "foyer: listening on ", "dev")
	anybody, err := client.New(dev.url())
	require.NoError(t, err)
	token, err := anybody.DevToken(t.Context(), "operator", "Op", "operator")
	require.NoError(t, err)
	queue := domain.DefaultQueue()
	queue.MaxActive = 1
	show, err := anybody.As(token).CreateShow(t.Context(), client.NewShow{ID: testenv.ShowID(t), Title: "With a lane", Queue: &queue})
	require.NoError(t, err)
	named := "?show=" + url.QueryEscape(string(show.ID))

	chromium := browser(t)
	operator := visit(t, chromium, dev.url()+"/operator.html"+named+"#token="+token)
	operator.sees("#limits-form")
	do(operator, "see the limits", chromedp.Poll[bool](`document.querySelector("#limits-form [name=maxActive]").value === "1"`))
	do(operator, "name a lane", chromedp.SendKeys(chromedp.CSS(`#limits-form [name="lanes"]`), "fans 3"))
	operator.click("#limits-save")
	operator.sees("#codes-form")
	operator.click("#mint")
	operator.sees("#codes")
	code := do(operator, "read the code", chromedp.Evaluate[string](`document.querySelector("#codes").value`))

	page := dev.url() + "/show.html" + named
	ada, bob := visit(t, chromium, page), visit(t, chromium, page)
	ada.signIn("Ada")
	ada.click("#join")
	ada.sees(`#status[data-status="ADMITTED"]`)
	bob.signIn("Bob")
	bob.sees("#code")
	do(bob, "type a wrong code", chromedp.SendKeys(chromedp.CSS("#code"), "SUMMER"))
	bob.click("#join")
	do(bob, "hear that it is wrong", chromedp.Poll[bool](`document.querySelector("#notice-text").textContent.includes("no join code")`))
	bob.sees(`#status[data-status="NONE"]`)
	do(bob, "type the code", chromedp.SetValue(chromedp.CSS("#code"), code))
	bob.click("#join")
	bob.sees(`#status[data-status="WAITING"]`)
	require.Contains(t, bob.text("#lane"), "fans")
	require.Equal(t, "1", bob.text("#rank"))
	do(operator, "see who waits in the lane", chromedp.Poll[bool](`document.querySelector("[data-lane='Waiting: fans']")?.textContent === "1"`))

	// What was told of somebody is gone when the next one is asked for.
	mail := "cyd+shop@example.org"
	cyd, err := anybody.DevToken(t.Context(), domain.PersonID(mail), "Cyd")
	require.NoError(t, err)
	_, _, err = anybody.As(cyd).Join(t.Context(), show.ID)
	require.NoError(t, err)
	do(operator, "name a person", chromedp.SendKeys(chromedp.CSS("#place-name"), mail))
	operator.click("#explain")
	operator.sees("#explanation")
	do(operator, "name nobody", chromedp.SetValue(chromedp.CSS("#place-name"), "nobody"))
	operator.click("#explain")
	do(operator, "hear that there is nobody", chromedp.Poll[bool](`document.querySelector("#problem").textContent.includes("Nobody of this name")`))
	require.True(t, do(operator, "see nothing of the other", chromedp.Evaluate[bool](`document.querySelector("#explanation").hidden`)))
	dev.terminate(t)
}

// On a phone nothing of an operator's page is off the screen, however long a show's id
// is, nor of a visitor's when every seat is in a basket; and a word about what was saved
// goes when the next thing is typed.
func TestE2EBrowserPagesFitAPhone(t *testing.T) {
	dev := start(t, []string{"FOYER_REDIS_URL=", "FOYER_DATABASE_URL=", "FOYER_HTTP_ADDR=127.0.0.1:0"}, "foyer: listening on ", "dev")
	operator, err := client.New(dev.url())
	require.NoError(t, err)
	token, err := operator.DevToken(t.Context(), "operator", "Op", "operator")
	require.NoError(t, err)
	long := domain.ShowID(string(testenv.ShowID(t)) + strings.Repeat("x", 64))[:64]
	_, err = operator.As(token).CreateShow(t.Context(), client.NewShow{ID: long, Title: "A show with a long name indeed", Seating: seating(1, 1)})
	require.NoError(t, err)
	guest, err := operator.DevToken(t.Context(), "guest", "Guest")
	require.NoError(t, err)
	_, _, err = operator.As(guest).Join(t.Context(), long)
	require.NoError(t, err)
	_, err = operator.As(guest).Claim(t.Context(), long)
	require.NoError(t, err)
	_, err = operator.As(guest).HoldBest(t.Context(), long, 1, "")
	require.NoError(t, err)

	chromium := browser(t)
	phone := chromedp.EmulateViewport(360, 740)
	fits := func(v *visitor, selector string) {
		t.Helper()
		v.sees(selector)
		require.LessOrEqual(t, do(v, "measure the page", chromedp.Evaluate[float64](`document.documentElement.scrollWidth`)), 360.0)
		require.LessOrEqual(t, do(v, "measure "+selector, chromedp.Evaluate[float64](
			fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().right`, selector))), 360.0)
	}
	desk := visit(t, chromium, dev.url()+"/operator.html")
	do(desk, "hold a phone", phone)
	desk.signIn("Op")
	manage := `[data-show="` + string(long) + `"] button`
	fits(desk, manage)
	desk.click(manage)
	do(desk, "type a limit", chromedp.SetValue(chromedp.CSS(`#limits-form [name="maxActive"]`), "77"))
	desk.click("#limits-save")
	do(desk, "see that it is saved", chromedp.Poll[bool](`document.querySelector("#done").textContent === "Saved."`))
	do(desk, "type nonsense", chromedp.SetValue(chromedp.CSS(`#limits-form [name="maxActive"]`), "0"))
	desk.click("#limits-save")
	do(desk, "see no word of the past", chromedp.Poll[bool](`document.querySelector("#done").textContent === ""`))

	visitor := visit(t, chromium, dev.url()+"/show.html?show="+string(long))
	do(visitor, "hold a phone", phone)
	fits(visitor, `#availability[data-availability="ALL_HELD"]`)
	dev.terminate(t)
}
