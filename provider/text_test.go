package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

func TestTextReadsAnything(t *testing.T) {
	for in, want := range map[string]Text{
		`"a"`: "a", `null`: "", `false`: "", `true`: "true", `17`: "17", `{"a":1}`: `{"a":1}`, `["x"]`: `["x"]`, `"\u00e9"`: "é",
		`"` + strings.Repeat("é", 4000) + `"`: Text(strings.Repeat("é", 2048)),
	} {
		got := struct{ T Text }{T: "before"}
		require.NoError(t, json.Unmarshal([]byte(`{"T":`+in+`}`), &got))
		assert.Equal(t, want, got.T, in)
	}
}

// A report is kept as long as its job is watched: it must not hold on to what
// was cut off.
func TestALongTextKeepsNoMoreThanItsBound(t *testing.T) {
	for _, form := range []string{`"%s"`, `"\\n%s"`, `["%s"]`} {
		body := fmt.Appendf(nil, form, strings.Repeat("x", 1<<18))
		kept := make([]Text, 16)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range kept {
			require.NoError(t, json.Unmarshal(body, &kept[i]))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20), form)
		runtime.KeepAlive(kept)
	}
}

// Of a part of an answer the rest is not kept either, where that is much.
func TestAVideoKeepsLittleOfTheAnswerAroundIt(t *testing.T) {
	const videos = `[{"gcsUri":"gs://b/a.mp4"}]`
	for _, rest := range []string{"", strings.Repeat("x", 1<<18)} {
		response := []byte(`{"rest":"` + rest + `","videos":` + videos + `}`)
		output, _ := veoOutput(response)
		require.JSONEq(t, videos, string(output))
		clear(response)
		kept := !strings.HasPrefix(string(output), "[")
		require.Equal(t, rest == "", kept)
	}
}

func TestTimesOfAllForms(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for in, want := range map[Text]time.Time{
		"2026-01-02T03:04:05Z": at, "2026-01-02T05:04:05+02:00": at, " 2026-01-02T03:04:05.000Z ": at,
		"1767323045": at, "1767323045000": at, "1767323045.5": at.Add(time.Second / 2),
		"": {}, "soon": {}, "2026-01-02T03:04:05": {}, "0": {}, "-5": {}, "1e300": {}, "NaN": {}, "Inf": {},
	} {
		assert.Equal(t, want, in.Time(), "%q", in)
	}
}

func TestSecondsAreBounded(t *testing.T) {
	for in, want := range map[string]time.Duration{
		`12`: 12 * time.Second, `12.5`: 12500 * time.Millisecond, `"12.5"`: 12500 * time.Millisecond, `" 3 "`: 3 * time.Second,
		`1e2`: 100 * time.Second, `"0x10p0"`: 16 * time.Second, `1e-9`: 1, `1e-300`: 0,
		`0`: 0, `-0.0`: 0, `-1`: 0, `-1e308`: 0, `"-1e999"`: 0, `null`: 0, `true`: 0, `{}`: 0, `[]`: 0, `""`: 0, `"soon"`: 0, `"12s"`: 0,
		`"NaN"`: 0, `"Inf"`: 0, `"+infinity"`: 0, `"-Inf"`: 0,
		`9223372036`: jobpoll.MaxRetryAfter, `9223372037`: jobpoll.MaxRetryAfter, `9223372036854775808`: jobpoll.MaxRetryAfter,
		`1e308`: jobpoll.MaxRetryAfter, `1e999`: jobpoll.MaxRetryAfter, `"1e999"`: jobpoll.MaxRetryAfter,
	} {
		var got Text
		require.NoError(t, json.Unmarshal([]byte(in), &got), in)
		assert.Equal(t, want, got.Seconds(), in)
	}
}

func FuzzSeconds(f *testing.F) {
	for _, s := range []string{"1", "-1", "1e999", "NaN", "Inf", "0x1p62", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := Text(s).Seconds()
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, jobpoll.MaxRetryAfter)
	})
}

func TestWhatIsAnOutput(t *testing.T) {
	for _, s := range []string{`"u"`, `["u"]`, `[null,"u"]`, `{"a":null}`, `0`, `false`, ` [ [] ] `, `[{}]`} {
		assert.True(t, HasOutput(json.RawMessage(s)), s)
	}
	for _, s := range []string{``, ` `, `null`, `""`, `[]`, `{}`, ` { } `, `[null,""]`, `[ ]`} {
		assert.False(t, HasOutput(json.RawMessage(s)), s)
	}
}

func TestTheCodeInATextOfReplicate(t *testing.T) {
	for in, want := range map[string]string{
		"Prediction interrupted; please retry (code: PA)": "PA", "flagged (E005)": "E005", "out of memory (GPU)": "", "(E1)": "", "x": "", "()": "",
		"a ) b (": "", "(code: )": "", "(code: toolong99999)": "", "f(x) = E005": "",
	} {
		assert.Equal(t, want, replicateCode(in), in)
	}
}

// What came instead of URLs is no output of a provider that gives URLs.
func TestAnOutputWithoutAURLIsNone(t *testing.T) {
	for name, body := range map[string]string{
		"runway": `{"id":"x","status":"SUCCEEDED","output":%s}`, "atlas": `{"code":200,"data":{"id":"x","status":"completed","outputs":%s}}`,
		"wavespeed": `{"code":200,"data":{"id":"x","status":"completed","outputs":%s}}`,
		"luma":      `{"id":"x","state":"completed","assets":{"video":%s}}`, "ark": `{"id":"x","status":"succeeded","content":{"video_url":%s}}`,
		"kling":     `{"code":0,"data":{"task_id":"x","task_status":"succeed","task_result":{"videos":[{"url":%s}]}}}`,
		"kling3":    `{"code":0,"data":[{"id":"x","status":"succeeded","outputs":[{"url":%s}]}]}`,
		"dashscope": `{"output":{"task_id":"x","task_status":"SUCCEEDED","video_url":%s}}`,
		"minimax2":  `{"task":{"id":"x","status":"succeeded","content":{"url":%s}}}`,
		"xai":       `{"status":"done","video":{"url":%s}}`, "stability": `{"finish_reason":"SUCCESS","video":%s}`,
		"veo":    `{"name":"x","done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":%s}}]}}}`,
		"vertex": `{"name":"x","done":true,"response":{"videos":[{"gcsUri":%s}]}}`,
	} {
		for _, none := range []string{`null`, `false`, `true`, `""`, `"  "`, `{}`, `[]`} {
			rep := looked(t, name, fmt.Sprintf(body, none))
			require.Equal(t, jobpoll.StateFailed, rep.State, "%s %s", name, none)
			require.Equal(t, &jobpoll.Failure{Kind: jobpoll.FailureNoOutput}, rep.Failure, "%s %s", name, none)
			require.Nil(t, rep.Output)
		}
		require.Equal(t, jobpoll.StateSucceeded, looked(t, name, fmt.Sprintf(body, `"https://cdn.example/a.mp4"`)).State, name)
	}
	for _, name := range []string{"runway", "atlas", "wavespeed"} {
		body := map[string]string{"runway": `{"status":"SUCCEEDED","output":%s}`}[name]
		if body == "" {
			body = `{"code":200,"data":{"status":"completed","outputs":%s}}`
		}
		for _, none := range []string{`[{}]`, `[[]]`, `[" "]`, `[false, null]`, `[{"url":""}]`, `{"url":null}`, `true`, `7`} {
			require.Equal(t, jobpoll.FailureNoOutput, looked(t, name, fmt.Sprintf(body, none)).Failure.Kind, "%s %s", name, none)
		}
		for _, some := range []string{`["", "u"]`, `"u"`, `[{"url":"u"}]`, `[null,[{"a":{"b":"u"}}]]`} {
			require.JSONEq(t, some, string(looked(t, name, fmt.Sprintf(body, some)).Output), name)
		}
	}
}

// looked is what a look makes of an answer.
func looked(t *testing.T, name, body string) jobpoll.Report {
	t.Helper()
	rep, err := cannedAdapter(t, name, &canned{200, http.Header{"Content-Type": {"application/json"}}, []byte(body)}).
		Check(t.Context(), jobpoll.Job{Route: "r", ID: idFor(name), Ref: refFor(name)})
	require.NoError(t, err, "%s %s", name, body)
	return rep
}

// idFor is an id that the adapter of that name takes.
func idFor(name string) string {
	if name == "vertex" {
		return "projects/p/models/m/operations/x"
	}
	return "x"
}
