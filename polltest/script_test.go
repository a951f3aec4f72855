package polltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAScriptIsReadAndWrittenAlike(t *testing.T) {
	for text, want := range map[string]string{
		"queued": "at 0s queued",
		"at 3s queued; at 8s running 20% eta 30s; at 40s succeeded":     "at 3s queued; at 8s running 20% eta 30s; at 40s succeeded",
		"\n  queued pos 3\n\n  at 1m \"IN_REVIEW\"\n":                   `at 0s queued pos 3; at 1m0s "IN_REVIEW"`,
		`at 1s running "RENDERING" ref "a b" once ; at 2s unknown`:      `at 1s running "RENDERING" ref "a b" once; at 2s unknown`,
		`succeeded output {"a":"; \n", "b":[1]} completed expires 1h`:   `at 0s succeeded output {"a":"; \n", "b":[1]} completed expires 1h0m0s`,
		"succeeded output {\n\"a\": 1}; at 1s expired":                  "at 0s succeeded output {\n\"a\": 1}; at 1s expired",
		`failed filtered "not nice" retry-after 15s job`:                `at 0s failed filtered "not nice" retry-after 15s job`,
		`429 retry-after 30s account x3; at 0s 503; at 0s error "oops"`: `at 0s 429 retry-after 30s account x3; at 0s 503; at 0s error "oops"`,
		"slow 9s queued; at 1m hang; at 2m reset; at 3m panic \"p\"":    `at 0s queued slow 9s; at 1m0s hang; at 2m0s reset; at 3m0s panic "p"`,
		"20% running": "at 0s running 20%",
		`""`:          `at 0s ""`,
	} {
		s, err := ParseScript(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, s.String())
		again, err := ParseScript(s.String())
		require.NoError(t, err, s.String())
		assert.Equal(t, s, again)
	}
}

func TestAScriptsErrorNamesTheEntryAndWhatWasExpected(t *testing.T) {
	for text, want := range map[string]string{
		"":                           `the script is empty: expected a state`,
		"queued; at 8s runing 20%":   `script entry 2 ("at 8s runing 20%"): "runing": expected a state (queued, running,`,
		"queued; running":            `script entry 2 ("running"): "running": expected "at" and a time`,
		"at soon queued":             `script entry 1 ("at soon queued"): at "soon": expected a duration such as 30s`,
		"at -3s queued":              `expected a duration such as 30s`,
		"at 5s queued; at 3s failed": `script entry 2 ("at 3s failed"): at 3s: expected a time not before that of the entry above, 5s`,
		"at 5s":                      `nothing to tell: expected a state`,
		"queued failed":              `"failed": expected one state or error in an entry`,
		"queued pos":                 `the entry ends: expected a number after "pos"`,
		"queued pos 0":               `pos "0": expected a number from 1 on`,
		"queued eta; at 3s failed":   `the entry ends: expected a duration such as 30s after "eta"`,
		"queued much%":               `"much%": expected a percentage such as 20%`,
		"queued 1e999%":              `expected a percentage`,
		"queued soon":                `"soon": expected a percentage, pos, eta, ref`,
		"queued 20% 30%":             `a percentage is given twice`,
		"queued x0":                  `"x0": expected a number of looks such as x3`,
		"queued once x3":             `a number of looks is given twice`,
		`running "open`:              `expected a closing quote`,
		"succeeded output {":         `output {: expected JSON`,
		"error 20%":                  `a percentage: does not go with error: expected a word in quotes, slow, a number of looks`,
		"hang eta 3s":                `eta: does not go with hang`,
		"503 ref X":                  `ref: does not go with an HTTP status`,
		"200":                        `"200": expected a state`,
		"queued ref \xff":            `expected text in UTF-8`,
	} {
		_, err := ParseScript(text)
		require.Error(t, err, text)
		assert.ErrorContains(t, err, "polltest: ")
		assert.ErrorContains(t, err, want)
	}
}

func FuzzParseScript(f *testing.F) {
	for _, seed := range []string{
		"at 3s queued; at 8s running 20% eta 30s; at 40s succeeded",
		`failed filtered "a;b" once; at 1h "x" ref "\xff" output {"a":[1,"\n;"]} completed expires 1h`,
		"429 retry-after 30s account x3\nat 1s slow 9s hang\nat 2s error \"e\"",
		"succeeded output null", "running 1e300% pos 7", "succeeded output 1x3", `"at" budget`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScript(text)
		if err != nil {
			assert.ErrorContains(t, err, "polltest: ")
			return
		}
		again, err := ParseScript(s.String())
		require.NoError(t, err, "%q", s.String())
		require.Equal(t, s, again)
		require.Equal(t, s.String(), again.String())
		for _, st := range s.steps {
			if st.what != "panic" && st.what != "hang" {
				_, _ = st.answer(t.Context(), time.Time{})
			}
		}
	})
}
