package jobpoll

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var hintNow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// headerOf builds a header from key, value, key, value, …
func headerOf(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Add(kv[i], kv[i+1])
	}
	return h
}

type hintCase struct {
	name      string
	h         http.Header
	status    int // default 429
	now       time.Time
	wait      time.Duration
	malformed bool
}

func runHints(t *testing.T, cases []hintCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.status == 0 {
				c.status = http.StatusTooManyRequests
			}
			if c.now.IsZero() {
				c.now = hintNow
			}
			wait, malformed := retryHint(c.h, c.status, c.now)
			assert.Equal(t, c.wait, wait, "wait")
			assert.Equal(t, c.malformed, malformed, "malformed")
		})
	}
}

func TestRetryAfterIsReadInAllItsForms(t *testing.T) {
	runHints(t, []hintCase{
		{name: "no header", h: nil},
		{name: "empty header", h: http.Header{}},
		{name: "key without a value", h: http.Header{"Retry-After": nil}},
		{name: "other headers", h: headerOf("Content-Type", "application/json")},
		{name: "IMF date", h: headerOf("Retry-After", "Thu, 01 Jan 2026 00:01:30 GMT"), wait: 90 * time.Second},        // B01
		{name: "RFC 850 date", h: headerOf("Retry-After", "Thursday, 01-Jan-26 00:01:30 GMT"), wait: 90 * time.Second}, // B01
		{name: "asctime date", h: headerOf("Retry-After", "Thu Jan  1 00:01:30 2026"), wait: 90 * time.Second},         // B01
		{name: "date with spaces", h: headerOf("Retry-After", " Thu, 01 Jan 2026 00:01:30 GMT\t"), wait: 90 * time.Second},
		{name: "seconds are seconds", h: headerOf("Retry-After", "30"), status: 200, wait: 30 * time.Second}, // B02
		{name: "fraction", h: headerOf("Retry-After", "0.493"), wait: 493 * time.Millisecond},                // B03 a
		{name: "fraction is rounded up", h: headerOf("Retry-After", "1.0000000001"), wait: time.Second + 1},
		{name: "tiny fraction is rounded up", h: headerOf("Retry-After", "0."+strings.Repeat("0", 300)+"1"), wait: 1},
		{name: "fraction that rounds to the next second", h: headerOf("Retry-After", "1.9999999999"), wait: 2 * time.Second},
		{name: "leading zeros", h: headerOf("Retry-After", "007"), wait: 7 * time.Second},
		{name: "spaces", h: headerOf("Retry-After", " 30 "), wait: 30 * time.Second},                               // B03 d
		{name: "two headers", h: headerOf("Retry-After", "7", "Retry-After", "20"), wait: 20 * time.Second},        // B03 e
		{name: "two headers turned", h: headerOf("Retry-After", "20", "Retry-After", "7"), wait: 20 * time.Second}, // B03 e
		{name: "one of two malformed", h: headerOf("Retry-After", "soon", "Retry-After", "7"), wait: 7 * time.Second, malformed: true},
		{name: "zero", h: headerOf("Retry-After", "0")},
		{name: "zero fraction", h: headerOf("Retry-After", "0.000")},
		{name: "past date", h: headerOf("Retry-After", "Wed, 31 Dec 2025 23:59:00 GMT")}, // B08
		{name: "date of now", h: headerOf("Retry-After", "Thu, 01 Jan 2026 00:00:00 GMT")},
		{name: "any status", h: headerOf("Retry-After", "15"), status: 404, wait: 15 * time.Second}, // B06 b
	})
}

func TestMalformedRetryAfterIsNoHint(t *testing.T) { // B03 b, c
	for _, v := range []string{
		"-5", "nan", "NaN", "inf", "-inf", "+Inf", "1e9", "+5", "²", "٣", "５", "", " ", "soon", "5, 10", "5,10", "5;10", "5 10",
		"0x10", "1_000", ".5", "5.", "5.5.5", ".", "5s", "1h", "1.5e3", "-0", "5\x00", "\u00a05",
		"2026-01-01T00:01:30Z", "Thu, 01 Jan 2026 00:01:30 PST", "Thursday, 01-Jan-26 00:01:30 CET",
		"Thu, 32 Jan 2026 00:01:30 GMT", "Thu, 01 Jan 2026", "Fri, 31 Dec 10000 23:59:59 GMT",
	} {
		for _, key := range []string{"Retry-After", "Retry-After-Ms", "X-RateLimit-Retry-After", "Openai-Poll-After-Ms"} {
			wait, malformed := retryHint(headerOf(key, v), 429, hintNow)
			assert.Zero(t, wait, "%s: %q", key, v)
			assert.True(t, malformed, "%s: %q", key, v)
		}
	}
}

func TestHugeRetryAfterIsBoundedAndNeverEarly(t *testing.T) { // B04
	for _, v := range []string{
		"2592000", "2592001", "9223372036", "9223372037", "9223372036854775807", "9223372036854775808", "18446744073709551616",
		"9999999999", "99999999999999999999", strings.Repeat("9", 400), "99999999999999999999.999",
		"Fri, 31 Dec 9999 23:59:59 GMT",
	} {
		for _, key := range []string{"Retry-After", "X-RateLimit-Retry-After"} {
			wait, malformed := retryHint(headerOf(key, v), 429, hintNow)
			assert.Equal(t, MaxRetryAfter, wait, "%s: %q", key, v)
			assert.False(t, malformed, "%s: %q", key, v)
		}
	}
	for _, v := range []string{"2592000000", "9223372036854775807", "9223372036855", strings.Repeat("9", 400)} {
		for _, key := range []string{"Retry-After-Ms", "Openai-Poll-After-Ms"} {
			wait, malformed := retryHint(headerOf(key, v), 429, hintNow)
			assert.Equal(t, MaxRetryAfter, wait, "%s: %q", key, v)
			assert.False(t, malformed, "%s: %q", key, v)
		}
	}
	wait, _ := retryHint(headerOf("Retry-After", "2591999.999999999"), 429, hintNow)
	assert.Equal(t, MaxRetryAfter-1, wait, "just below the bound")
}

func TestWaitNeverFallsAsRetryAfterRises(t *testing.T) { // B07 d
	last := time.Duration(-1)
	for s := 0; s <= 3_000_000; s += 997 {
		wait, malformed := retryHint(http.Header{"Retry-After": {strconv.Itoa(s)}}, 429, hintNow)
		require.False(t, malformed)
		require.GreaterOrEqual(t, wait, last)
		require.Equal(t, min(time.Duration(s)*time.Second, MaxRetryAfter), wait)
		last = wait
	}
	last = 0
	for n := range 40 { // ever more digits, past every integer type
		wait, malformed := retryHint(http.Header{"Retry-After": {"1" + strings.Repeat("0", n)}}, 429, hintNow)
		require.False(t, malformed)
		require.GreaterOrEqual(t, wait, last, "%d zeros", n)
		last = wait
	}
	require.Equal(t, MaxRetryAfter, last)
}

func TestDatesAreMeasuredByTheClockOfTheAnswer(t *testing.T) { // B01
	const in90 = "Thu, 01 Jan 2026 00:01:30 GMT"
	runHints(t, []hintCase{
		{name: "our clock is fast", now: hintNow.Add(time.Hour), wait: 90 * time.Second,
			h: headerOf("Retry-After", in90, "Date", "Thu, 01 Jan 2026 00:00:00 GMT")},
		{name: "our clock is slow", now: hintNow.Add(-time.Hour), wait: 90 * time.Second,
			h: headerOf("Retry-After", in90, "Date", "Thu, 01 Jan 2026 00:00:00 GMT")},
		{name: "other form of date", now: hintNow.Add(time.Hour), wait: 90 * time.Second,
			h: headerOf("Retry-After", in90, "Date", "Thursday, 01-Jan-26 00:00:00 GMT")},
		{name: "unreadable date of the answer", wait: 90 * time.Second,
			h: headerOf("Retry-After", in90, "Date", "today")},
		{name: "date in the past of the answer", now: hintNow.Add(-time.Hour),
			h: headerOf("Retry-After", in90, "Date", "Thu, 01 Jan 2026 00:02:00 GMT")},
		{name: "year 1", now: time.Time{}.Add(1), wait: MaxRetryAfter, h: headerOf("Retry-After", in90)},
		{name: "year 9999", now: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), h: headerOf("Retry-After", in90)},
		{name: "seconds need no clock", now: hintNow.Add(time.Hour), wait: 5 * time.Second,
			h: headerOf("Retry-After", "5", "Date", "Thu, 01 Jan 1970 00:00:00 GMT")},
		{name: "epoch of a reset", now: hintNow.Add(time.Hour), wait: 90 * time.Second,
			h: headerOf("X-RateLimit-Reset", unixText(hintNow.Add(90*time.Second)), "Date", "Thu, 01 Jan 2026 00:00:00 GMT")},
	})
}

func unixText(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func TestDatesDoNotDependOnTheZoneOfTheMachine(t *testing.T) {
	zone := time.Local
	t.Cleanup(func() { time.Local = zone })
	time.Local = time.FixedZone("GMT", 5*3600) // a machine that means something else by it
	for _, v := range []string{"Thu, 01 Jan 2026 00:01:30 GMT", "Thu Jan  1 00:01:30 2026"} {
		wait, malformed := retryHint(headerOf("Retry-After", v), 429, hintNow.In(time.Local))
		assert.Equal(t, 90*time.Second, wait, v)
		assert.False(t, malformed, v)
	}
	time.Local = time.FixedZone("CET", 3600)
	wait, malformed := retryHint(headerOf("Retry-After", "Thursday, 01-Jan-26 00:01:30 CET"), 429, hintNow)
	assert.Zero(t, wait)
	assert.True(t, malformed)
}

func TestTheLargestOfTheExplicitWaitsWins(t *testing.T) {
	all := map[string]string{"Retry-After": "2", "Retry-After-Ms": "2000", "X-RateLimit-Retry-After": "2", "Openai-Poll-After-Ms": "2000"}
	for key := range all {
		h := http.Header{}
		for k, v := range all {
			h.Set(k, v)
		}
		h.Set(key, strings.Replace(all[key], "2", "9", 1))
		wait, malformed := retryHint(h, 200, hintNow)
		assert.Equal(t, 9*time.Second, wait, key)
		assert.False(t, malformed, key)
	}
	runHints(t, []hintCase{
		{name: "milliseconds", h: headerOf("Retry-After-Ms", "1500"), wait: 1500 * time.Millisecond},
		{name: "fraction of a millisecond", h: headerOf("Retry-After-Ms", "0.0000001"), wait: 1},
		{name: "poll after", h: headerOf("Openai-Poll-After-Ms", "5000"), status: 200, wait: 5 * time.Second},
		{name: "legacy date", h: headerOf("X-RateLimit-Retry-After", "Thu, 01 Jan 2026 00:01:30 GMT"), wait: 90 * time.Second},
		{name: "one malformed", h: headerOf("Retry-After", "nan", "Retry-After-Ms", "1500"), wait: 1500 * time.Millisecond, malformed: true},
	})
}

func TestExplicitWaitWinsOverResets(t *testing.T) {
	limits := []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60", "RateLimit", `"a";r=0;t=70`}
	with := func(kv ...string) http.Header { return headerOf(append(kv, limits...)...) }
	runHints(t, []hintCase{
		{name: "valid", h: with("Retry-After", "5"), wait: 5 * time.Second},
		{name: "malformed", h: with("Retry-After", "soon"), wait: 70 * time.Second, malformed: true},
		{name: "zero is none", h: with("Retry-After", "0"), wait: 70 * time.Second},
		{name: "past is none", h: with("Retry-After", "Wed, 31 Dec 2025 23:59:00 GMT"), wait: 70 * time.Second},
		{name: "resets are then not read", h: headerOf("Retry-After", "5", "X-RateLimit-Reset", "junk"), wait: 5 * time.Second},
	})
}

func TestRateLimitFieldsOfAllDrafts(t *testing.T) {
	runHints(t, []hintCase{
		{name: "three fields", h: headerOf("RateLimit-Limit", "100", "RateLimit-Remaining", "0", "RateLimit-Reset", "5"), wait: 5 * time.Second},
		{name: "draft 03 with policies in the limit", h: headerOf("RateLimit-Limit", "100, 100;w=10", "RateLimit-Remaining", "0", "RateLimit-Reset", "5"), wait: 5 * time.Second},
		{name: "draft 07", h: headerOf("RateLimit", "limit=100, remaining=0, reset=5"), wait: 5 * time.Second},
		{name: "draft 07 any order, no spaces", h: headerOf("RateLimit", "reset=5,remaining=0,limit=100"), wait: 5 * time.Second},
		{name: "draft 07 over lines", h: headerOf("RateLimit", "limit=100;w=60", "RateLimit", "remaining=0", "RateLimit", "reset=5"), status: 200, wait: 5 * time.Second},
		{name: "draft 07 unknown member", h: headerOf("RateLimit", "remaining=0, reset=5, burst=7, flag"), wait: 5 * time.Second},
		{name: "draft 08", h: headerOf("RateLimit", `"default";r=0;t=30`), wait: 30 * time.Second},
		{name: "draft 08 the used-up one counts", h: headerOf("RateLimit", `"default";r=50;t=30, "daily";r=0;t=4000`), wait: 4000 * time.Second},
		{name: "draft 08 the larger", h: headerOf("RateLimit", `"a";r=0;t=30, "b";r=0;t=20`), wait: 30 * time.Second},
		{name: "draft 08 over lines", h: headerOf("RateLimit", `"a";r=0;t=20`, "RateLimit", `"b";r=0;t=30`), wait: 30 * time.Second},
		{name: "draft 08 token as name", h: headerOf("RateLimit", `default; r=0; t=30`), wait: 30 * time.Second},
		{name: "draft 08 separators in the name", h: headerOf("RateLimit", `"a,b;r=9;t=\"1\\";r=0;t=30;pk=:YWJj:`), wait: 30 * time.Second},
		{name: "draft 08 no reset told", h: headerOf("RateLimit", `"a";r=0`)},
		{name: "all three", h: headerOf("RateLimit-Remaining", "0", "RateLimit-Reset", "5", "RateLimit", `"a";r=0;t=7`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "6"), wait: 7 * time.Second},
		{name: "huge", h: headerOf("RateLimit", `"a";r=0;t=100000000`), wait: MaxRetryAfter},
		{name: "huge and no epoch", h: headerOf("RateLimit", `"a";r=0;t=`+strings.Repeat("9", 400)), wait: MaxRetryAfter},
		{name: "policy alone", h: headerOf("RateLimit-Policy", `"burst";q=100;w=60`)},
	})
}

func TestMalformedRateLimitFieldIsIgnored(t *testing.T) {
	for _, v := range []string{
		"", ",", `"a`, `"a\"`, `"a";r=0;t=5,`, `;r=0;t=5`, `"a";;t=5`, `"a";r;t=5`, `"a";r=-1;t=5`, `"a";r=0;t=-5`, `"a";r=0;t=x`,
		`"a";r=0;t="5"`, `"a";r=?1;t=5`, `"a" b;r=0;t=5`, "100", "limit=100, remaining=x, reset=5", "remaining=0, reset=soon",
		"remaining=0, reset=", "=0", "remaining=0;reset=5 junk\"",
	} {
		wait, malformed := retryHint(headerOf("RateLimit", v), 429, hintNow)
		assert.Zero(t, wait, "%q", v)
		assert.True(t, malformed, "%q", v)

		wait, malformed = retryHint(headerOf("RateLimit", v, "RateLimit", `"ok";r=0;t=9`), 429, hintNow)
		assert.Equal(t, 9*time.Second, wait, "the other line counts: %q", v)
		assert.True(t, malformed, "%q", v)
	}
	wait, malformed := retryHint(headerOf("RateLimit", "remaining=0, reset=x", "RateLimit", "reset=4"), 200, hintNow)
	assert.Zero(t, wait, "nothing stays of a malformed line")
	assert.True(t, malformed)
}

func TestResetIsReadInAllItsEncodings(t *testing.T) {
	synctestStart := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // Unix 946684800
	for _, c := range []struct {
		v    string
		now  time.Time
		want time.Duration
	}{
		{"90", hintNow, 90 * time.Second},
		{" 90 ", hintNow, 90 * time.Second},
		{"90.0000000001", hintNow, 90*time.Second + 1},
		{"100000000", hintNow, MaxRetryAfter}, // 1e8 is still a wait
		{"1767225690", hintNow, 90 * time.Second},
		{"1767225690.25", hintNow, 90250 * time.Millisecond},
		{"1767225690000", hintNow, 90 * time.Second},
		{"1767225690001.0000001", hintNow, 90001*time.Millisecond + 1},
		{"1767225690000000", hintNow, 90 * time.Second},
		{"1767225690000000000", hintNow, 90 * time.Second},
		{"946684890", synctestStart, 90 * time.Second},
		{"946684890000", synctestStart, 90 * time.Second},
		{"1767225590", hintNow, 0}, // past
		{"100000001", hintNow, 0},  // the smallest epoch, long past
		{"1767225690", synctestStart, MaxRetryAfter},
		{"99999999999999999999", hintNow, MaxRetryAfter},
		{strings.Repeat("9", 400), hintNow, MaxRetryAfter},
		{"12ms", hintNow, 12 * time.Millisecond},
		{"6m0s", hintNow, 6 * time.Minute},
		{"1h2m", hintNow, 62 * time.Minute},
		{"1.5s", hintNow, 1500 * time.Millisecond},
		{"1d1h", hintNow, 25 * time.Hour},
		{"20µs", hintNow, 20 * time.Microsecond},
		{"7us3ns", hintNow, 7003},
		{"0s", hintNow, 0},
		{"9999999999999h", hintNow, MaxRetryAfter},
		{"29d24h1s", hintNow, MaxRetryAfter},
		{"Thu, 01 Jan 2026 00:01:30 GMT", hintNow, 90 * time.Second},
		{"Thursday, 01-Jan-26 00:01:30 GMT", hintNow, 90 * time.Second},
		{"Thu Jan  1 00:01:30 2026", hintNow, 90 * time.Second},
		{"2026-01-01T00:01:30Z", hintNow, 90 * time.Second},
		{"2026-01-01T00:01:30.000000001Z", hintNow, 90*time.Second + 1},
		{"2026-01-01T02:01:30+02:00", hintNow, 90 * time.Second},
		{"2026-01-01T00:01:30", hintNow, 90 * time.Second},
		{"2026-01-01 00:01:30", hintNow, 90 * time.Second},
		{"2026-01-01 00:01:30Z", hintNow, 90 * time.Second},
		{"2026-01-01 00:01:30 UTC", hintNow, 90 * time.Second},
		{"2026-01-01 01:01:30 +0100", hintNow, 90 * time.Second},
		{"Thu Jan 01 2026 00:01:30 GMT+0000 (Coordinated Universal Time)", hintNow, 90 * time.Second},
		{"Thu Jan 01 2026 01:01:30 GMT+0100 (Central European Standard Time)", hintNow, 90 * time.Second},
		{"Thu Jan 01 2026 00:01:30 GMT+0000", hintNow, 90 * time.Second},
		{"2025-12-31 23:59:59", hintNow, 0},
		{"9999-12-31T23:59:59Z", hintNow, MaxRetryAfter},
	} {
		for _, key := range []string{"RateLimit-Reset", "X-RateLimit-Reset", "X-RateLimit-Reset-Requests", "X-RateLimit-Reset-Tokens"} {
			wait, malformed := retryHint(headerOf(key, c.v), 429, c.now)
			assert.Equal(t, c.want, wait, "%s: %s", key, c.v)
			assert.False(t, malformed, "%s: %s", key, c.v)
		}
	}
	for _, v := range []string{
		"", "-5", "+5", "nan", "inf", "1e9", "soon", "5, 10", "0x10", "5x", "s", "1h2", "-1h", "1h-2m", "1..5s", "2026-13-01T00:00:00Z",
		"2026-01-01", strings.Repeat("a", 200), "2026-01-01T00:01:30Z" + strings.Repeat(" ", 200) + "x", "Thu, 01 Jan 2026 00:01:30 CET",
	} {
		wait, malformed := retryHint(headerOf("X-RateLimit-Reset", v), 429, hintNow)
		assert.Zero(t, wait, "%q", v)
		assert.True(t, malformed, "%q", v)
	}
}

func TestResetCountsOnlyWhereTheLimitIsUsedUp(t *testing.T) {
	legacy := func(remaining string) http.Header {
		return headerOf("X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", "60")
	}
	untold := headerOf("X-RateLimit-Reset", "60")
	const minute = time.Minute
	var cases []hintCase
	for _, status := range []int{429, 503} {
		cases = append(cases,
			hintCase{name: "used up", status: status, h: legacy("0"), wait: minute},
			hintCase{name: "not told", status: status, h: untold, wait: minute},
			hintCase{name: "something left", status: status, h: legacy("50")},
			hintCase{name: "unreadable counts as not told", status: status, h: legacy("many"), wait: minute, malformed: true},
			hintCase{name: "item not told", status: status, h: headerOf("RateLimit", `"a";t=60`), wait: minute},
			hintCase{name: "item left", status: status, h: headerOf("RateLimit", `"a";r=1;t=60`)},
			hintCase{name: "dictionary left", status: status, h: headerOf("RateLimit", `remaining=1, reset=60`)},
		)
	}
	for _, status := range []int{200, 202, 404, 500, 502, 401, 0, -1} {
		cases = append(cases,
			hintCase{name: "used up", status: status, h: legacy("0"), wait: minute},
			hintCase{name: "not told", status: status, h: untold},
			hintCase{name: "something left", status: status, h: legacy("50")},
			hintCase{name: "unreadable", status: status, h: legacy("many"), malformed: true},
			hintCase{name: "item used up", status: status, h: headerOf("RateLimit", `"a";r=0;t=60`), wait: minute},
			hintCase{name: "item not told", status: status, h: headerOf("RateLimit", `"a";t=60`)},
			hintCase{name: "unreadable reset that does not count", status: status, h: headerOf("X-RateLimit-Remaining", "5", "X-RateLimit-Reset", "junk")},
		)
	}
	cases = append(cases,
		hintCase{name: "each kind with its own remaining", status: 200, wait: 6 * time.Minute, h: headerOf(
			"X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "6m0s",
			"X-RateLimit-Remaining-Tokens", "10", "X-RateLimit-Reset-Tokens", "1h")},
		hintCase{name: "the larger of two used up", status: 200, wait: time.Hour, h: headerOf(
			"X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "6m0s",
			"X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "1h")},
		hintCase{name: "least of several", status: 200, wait: time.Hour, h: headerOf(
			"X-RateLimit-Remaining", "9", "X-RateLimit-Remaining", "0", "X-RateLimit-Remaining", "7",
			"X-RateLimit-Reset", "60", "X-RateLimit-Reset", "3600")},
		hintCase{name: "remaining without a reset", status: 429, h: headerOf("X-RateLimit-Remaining", "0")},
	)
	for i := range cases {
		cases[i].name = fmt.Sprintf("%d %s", cases[i].status, cases[i].name)
	}
	// A status of 0 is a case of its own here, not the default.
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wait, malformed := retryHint(c.h, c.status, hintNow)
			assert.Equal(t, c.wait, wait)
			assert.Equal(t, c.malformed, malformed)
		})
	}
}

func TestResetsOfACachedAnswerAreIgnored(t *testing.T) {
	limits := []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60", "RateLimit", `"a";r=0;t=70`}
	with := func(kv ...string) http.Header { return headerOf(append(kv, limits...)...) }
	runHints(t, []hintCase{
		{name: "cached", h: with("Age", "1")},
		{name: "fresh", h: with("Age", "0"), wait: 70 * time.Second},
		{name: "unreadable age", h: with("Age", "old"), wait: 70 * time.Second},
		{name: "explicit wait stays", h: with("Age", "1", "Retry-After", "5"), wait: 5 * time.Second},
	})
}

func TestHeadersWithoutAHintCostNothing(t *testing.T) {
	none := headerOf("Content-Type", "application/json", "Date", "Thu, 01 Jan 2026 00:00:00 GMT", "Content-Length", "512")
	seconds := headerOf("Retry-After", "30")
	assert.Zero(t, testing.AllocsPerRun(100, func() { retryHint(none, 200, hintNow) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { retryHint(seconds, 200, hintNow) }))
}

func FuzzRetryHint(f *testing.F) {
	f.Add("30", "", "0", "60", `"a";r=0;t=5`, "", uint8(0), 429, int64(0), uint64(30))
	f.Add("Thu, 01 Jan 2026 00:01:30 GMT", "1500", "", "1767225690", "limit=1, remaining=0, reset=5", "Thu, 01 Jan 2026 00:00:00 GMT", uint8(1), 503, int64(1767225600), uint64(math.MaxUint64))
	f.Add("0.493", "1e9", "5", "6m0s", `"a\"`, "junk", uint8(2), 200, int64(946684800), uint64(9223372037))
	f.Add("²", "5.", "-1", "Tue Mar 05 2024 10:00:00 GMT+0000 (UTC)", `a;pk=:YQ==:;r=1`, "", uint8(3), -1, int64(-62135596800), uint64(2592000))
	f.Add(strings.Repeat("9", 400), "9.9", "", "2024-03-05 10:00:00", ",;,", "", uint8(7), 0, int64(253402300799), uint64(0))
	starts := []int64{-62135596800, 0, 946684800, 1767225600, 253402300799} // years 1, 1970, 2000, 2026, 9999
	keys := []string{"Retry-After", "Retry-After-Ms", "X-Ratelimit-Retry-After", "Openai-Poll-After-Ms", "Age"}
	f.Fuzz(func(t *testing.T, explicit, other, remaining, reset, field, date string, key uint8, status int, at int64, seconds uint64) {
		now := time.Unix(at%300e9, at%1e9).UTC()
		if key&0x40 != 0 {
			now = time.Unix(starts[int(key&0x3f)%len(starts)], 0)
		}
		i := int(key & 0x3f)
		h := http.Header{
			keys[i%len(keys)]:                  {explicit},
			keys[(i+1)%len(keys)]:              {other, explicit},
			limitPairs[i%4].remaining:          {remaining},
			limitPairs[i%4].reset:              {reset},
			limitPairs[(i+1)%4].reset:          {explicit, field},
			"Ratelimit":                        {field, reset},
			"Date":                             {date},
			keys[(i+2)%len(keys)] + "-Ignored": {explicit},
		}
		within := func(wait time.Duration) {
			if wait < 0 || wait > MaxRetryAfter {
				t.Fatalf("wait %v is out of bounds for %q at %v", wait, h, now)
			}
		}
		first, bad := retryHint(h, status, now)
		within(first)
		if again, badAgain := retryHint(h, status, now); again != first || badAgain != bad {
			t.Fatalf("not the same twice: %v, %v", first, again)
		}

		// Whatever else is there: never earlier than a valid number of seconds.
		want := MaxRetryAfter
		if seconds < uint64(MaxRetryAfter/time.Second) {
			want = time.Duration(seconds) * time.Second
		}
		h["Retry-After"] = append(h["Retry-After"], strconv.FormatUint(seconds, 10))
		wait, _ := retryHint(h, status, now)
		within(wait)
		if wait < want {
			t.Fatalf("asked for %v, would wait %v, with %q", want, wait, h)
		}
		alone, malformed := retryHint(http.Header{"Retry-After": {strconv.FormatUint(seconds, 10)}}, status, now)
		if alone != want || malformed {
			t.Fatalf("asked for %v alone, would wait %v, malformed %v", want, alone, malformed)
		}
	})
}

var sinkHint time.Duration

func benchmarkRetryHint(b *testing.B, h http.Header) {
	b.Helper()
	h.Set("Content-Type", "application/json")
	h.Set("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
	h.Set("Content-Length", "512")
	h.Set("X-Request-Id", "0123456789abcdef")
	h.Set("Cache-Control", "no-store")
	b.ReportAllocs()
	for b.Loop() {
		sinkHint, _ = retryHint(h, 200, hintNow)
	}
}

func BenchmarkRetryHintNone(b *testing.B)    { benchmarkRetryHint(b, http.Header{}) }
func BenchmarkRetryHintSeconds(b *testing.B) { benchmarkRetryHint(b, headerOf("Retry-After", "30")) }
func BenchmarkRetryHintDate(b *testing.B) {
	benchmarkRetryHint(b, headerOf("Retry-After", "Thu, 01 Jan 2026 00:01:30 GMT"))
}
func BenchmarkRetryHintRateLimit(b *testing.B) {
	benchmarkRetryHint(b, headerOf("RateLimit", `"default";r=50;t=30, "daily";r=0;t=4000`))
}
