package provider

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// What a walk reads of a part of an answer is compared with what package json
// makes of the same bytes.

// urlsByJSON is withURL by package json.
func urlsByJSON(list []byte, fields ...string) bool {
	var all []map[string]filled
	_ = json.Unmarshal(list, &all)
	for _, one := range all {
		for _, f := range fields {
			if one[f] {
				return true
			}
		}
	}
	return false
}

// filled is a value that is not false, not blank, and no empty object or list.
type filled bool

func (f *filled) UnmarshalJSON(b []byte) error {
	var v any
	_ = json.Unmarshal(b, &v) // it is JSON; a number may be too large
	switch v := v.(type) {
	case string:
		*f = strings.TrimSpace(v) != ""
	case map[string]any:
		*f = len(v) > 0
	case []any:
		*f = len(v) > 0
	default:
		*f = string(b) != "null" && string(b) != "false"
	}
	return nil
}

// textByJSON is holdsText by package json.
func textByJSON(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v) != ""
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), textByJSON)
	case []any:
		return slices.ContainsFunc(v, textByJSON)
	}
	return false
}

// veoByJSON is veoOutput by package json.
func veoByJSON(response []byte) (output []byte, f jobpoll.Failure) {
	type taken struct {
		Count   Text   `json:"raiMediaFilteredCount"`
		Reasons []Text `json:"raiMediaFilteredReasons"`
	}
	var v struct {
		taken
		Videos json.RawMessage `json:"videos"`
		Gemini struct {
			taken
			Samples json.RawMessage `json:"generatedSamples"`
		} `json:"generateVideoResponse"`
		Older json.RawMessage `json:"generatedSamples"`
	}
	_ = json.Unmarshal(response, &v)
	if urlsByJSON(v.Videos, "gcsUri", "bytesBase64Encoded") {
		return v.Videos, f
	}
	for _, of := range []json.RawMessage{v.Gemini.Samples, v.Older} {
		var samples []struct {
			Video struct {
				URI   filled `json:"uri"`
				Bytes filled `json:"encodedVideo"`
			} `json:"video"`
		}
		_ = json.Unmarshal(of, &samples)
		for _, s := range samples {
			if s.Video.URI || s.Video.Bytes {
				return of, f
			}
		}
	}
	for _, t := range []taken{v.taken, v.Gemini.taken} {
		if n, _ := t.Count.count(); n == 0 && len(t.Reasons) == 0 {
			continue
		}
		f.Kind = jobpoll.FailureFiltered
		for _, reason := range t.Reasons {
			f.Message = strings.TrimPrefix(cut([]byte(f.Message+"; "+string(reason))), "; ")
		}
	}
	return nil, f
}

// tasksByJSON is klingTasks by package json.
func tasksByJSON(data []byte) (tasks []klingTask, isList bool) {
	if len(data) > 0 && data[0] == '[' {
		_ = json.Unmarshal(data, &tasks)
		return tasks, true
	}
	var one struct {
		klingTask
		Result []klingTask `json:"result"`
	}
	_ = json.Unmarshal(data, &one)
	if one.Result != nil {
		return one.Result, true
	}
	return []klingTask{one.klingTask}, false
}

// blocked is a flag that is set by false, and left as it is by what is no flag.
type blocked bool

func (b *blocked) UnmarshalJSON(raw []byte) error {
	var clear *bool
	if json.Unmarshal(raw, &clear) == nil {
		*b = clear != nil && !blocked(*clear)
	}
	return nil
}

// walkAll goes over all there is; each step costs of the budget.
func walkAll(t *testing.T, raw []byte, budget *int) {
	for _, w := range []walk{members(raw), items(raw)} {
		for w.next() {
			if *budget--; *budget < 0 || len(w.value) == 0 {
				t.Fatal("a walk that does not end")
			}
			walkAll(t, w.value, budget)
		}
	}
}

// sameAsJSON requires that each way to read a part by a walk gives what package
// json does.
func sameAsJSON(t *testing.T, raw []byte) {
	raw = json.RawMessage(strings.TrimSpace(string(raw))) // as package json gives it

	var v struct {
		URL     filled  `json:"url"`
		Video   filled  `json:"video_url"`
		Respect blocked `json:"respect_moderation"`
	}
	_ = json.Unmarshal(raw, &v)
	require.Equal(t, bool(v.URL), textIn(raw, "url"))
	require.Equal(t, bool(v.Video), textIn(raw, "video_url"))
	made, taken := (&xaiVideo{Video: raw}).video()
	require.Equal(t, bool(v.URL), made)
	require.Equal(t, bool(v.Respect), taken)

	var whole any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&whole))
	// Of a name that comes twice package json keeps the last value alone.
	require.False(t, textByJSON(whole) && !holdsText(raw), "%s", raw)
	if bytes.Count(raw, []byte{'"'}) <= 2 {
		require.Equal(t, textByJSON(whole), holdsText(raw), "%s", raw)
	}

	require.Equal(t, urlsByJSON(raw, "url", "video_url"), withURL(raw, "url", "video_url") != nil)

	want, failure := veoByJSON(raw)
	got, f := veoOutput(raw)
	require.Equal(t, string(want), string(got))
	require.Equal(t, failure, f)

	var word string
	_ = json.Unmarshal(raw, &word)
	require.Equal(t, word, unquoted(raw))

	type fields struct {
		Code    Text            `json:"code"`
		Message Text            `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	var envelope fields
	_ = json.Unmarshal(raw, &envelope)
	var reply klingReply
	require.NoError(t, reply.UnmarshalJSON(raw))
	require.Equal(t, envelope.Code, reply.code)
	require.Equal(t, envelope.Message, reply.text)
	lists := 0
	for m := members(raw); m.next(); {
		if m.is("result") {
			lists++ // package json mixes what is in two of them
		}
	}
	if lists < 2 {
		tasks, isList := tasksByJSON(raw)
		got, gotList := klingTasks(nil, raw)
		require.Equal(t, isList, gotList)
		require.Equal(t, len(tasks), len(got))
		for i := range tasks {
			require.Equal(t, tasks[i], got[i])
		}
	}
	if raw[0] == '{' {
		var e openAIError
		require.NoError(t, e.UnmarshalJSON(raw))
		var typed struct {
			Type Text `json:"type"`
		}
		_ = json.Unmarshal(raw, &typed)
		require.Equal(t, openAIError{Code: envelope.Code, Type: typed.Type, Message: envelope.Message}, e)
	}
}

// oddJSON is what is read in the same way by both, though it is not easy to see.
var oddJSON = []string{
	`[{"url":" "}]`, `[{"url":"\n"}]`, "[{\"url\":\"\u00a0\"}]", `[{"url":"{}"}]`, `[{"url":{ }}]`, `[{"url":[ ]}]`, `[{"url":5}]`,
	`{}`, `[]`, `null`, `true`, `7`, `""`, `"a\"b\\"`, `"\ud800"`, "\"\xff\"", ` { } `, `[ [ ] , { } ]`,
	`{"url":"a","url":""}`, `{"url":"","url":"a"}`, `{"URL":"a"}`, `{"\u0075rl":"a"}`, `{"\u0055RL":"a","url":null}`, "{\"ur\xff\":1}",
	`{"url":{"a":"}"},"x":["\\","]"]}`, `{"url":false}`, `{"url":"a","url":false}`, `{"video_url" : [ ] , "url":null}`, `{"uRl":"\\"}`,
	`{"respect_moderation":false}`, `{"respect_moderation":false,"respect_moderation":"x"}`, `{"respect_moderation":false,"respect_moderation":null}`, `{"respect_moderation":"true"}`,
	"{\"re\u017fpect_moderation\":false}", // the long s is an s to package json
	`[{"url":"a"}]`, `[null,7,{"URL":"a"}]`, `[{"url":"a","url":null}]`, `[{"u\u0072l":"a"}]`, `[[{"url":"a"}]]`, "[\n{\t\"video_url\" :\r1 } ]",
	`{"videos":[{"gcsUri":"g"}]}`, `{"videos":[{"gcsuri":"g"}],"generateVideoResponse":{"generatedSamples":[{"VIDEO":{"URI":"u"}}]}}`,
	`{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"u"},"video":{}}]}}`, `{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"u"},"video":{"uri":null}}]}}`,
	`{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"u"}}]},"generateVideoResponse":{"x":1}}`,
	`{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"u"}}]},"generateVideoResponse":null}`,
	`{"raiMediaFilteredReasons":["a",null,{"b":1}],"raiMediaFilteredReasons":"c"}`, `{"raiMediaFilteredReasons":["a"],"raiMediaFilteredReasons":null}`,
	`{"raiMediaFilteredCount":2,"generateVideoResponse":{"raiMediaFilteredCount":"1","raiMediaFilteredReasons":["z"]}}`, `{"raiMediaFilteredReasons":[]}`,
	`{"task_id":1,"task_status":"a","task_status_msg":"b","task_result":{"videos":[1],"images":{}},"updated_at":2,"id":3,"status":"c","message":"d","outputs":null,"update_time":"e"}`,
	`{"status":"a","status":null,"status":7,"task_result":{"videos":1},"task_result":[],"task_result":{"images":2},"result":"x"}`, `{"Result":[],"id":1}`,
	`{"result":[{"id":1},null,7,{"task_id":"b","status":"\u0061"}]}`, `[{"id":1,"task_status":{}},[],{"Task_Result":{"VIDEOS":["x"]}}]`, `{"result":null}`,
	`{"code":0,"Message":"m","data":{"task_id":"a"}}`, `{"code":{"a":1},"code":"x","message":[1]}`,
}

func TestAWalkReadsWhatPackageJSONReads(t *testing.T) {
	for _, raw := range oddJSON {
		t.Run(raw, func(t *testing.T) { sameAsJSON(t, []byte(raw)) })
	}
	var parts func(raw []byte)
	parts = func(raw []byte) {
		sameAsJSON(t, raw)
		for _, w := range []walk{members(raw), items(raw)} {
			for w.next() {
				parts(w.value)
			}
		}
	}
	for _, name := range everyAdapter() {
		for _, file := range fixtureFiles(t, name) {
			for _, x := range readFixture(t, file, "https://api.example").exchanges {
				if body := []byte(x.body); json.Valid(body) {
					parts(body)
				}
			}
		}
	}
}

func FuzzWalk(f *testing.F) {
	for _, raw := range oddJSON {
		f.Add([]byte(raw))
	}
	for _, raw := range []string{``, `"`, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1,`, `{"a\`, `[,]`, `[1`, `["\`, `]`, `}`, `{"a"]}`, `{,,"a":1}`, `[{"url":`, `[{"url":"`, `{"url":{`} {
		f.Add([]byte(raw))
	}
	for _, name := range familyNames() {
		f.Add([]byte(families[name].body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<10 {
			return
		}
		steps := 4 * (len(raw) + 1) * (len(raw) + 1)
		walkAll(t, raw, &steps)
		if json.Valid(raw) {
			sameAsJSON(t, raw)
		} else {
			veoOutput(raw)
			withURL(raw, "url")
			textIn(raw, "url")
			holdsText(raw)
			(&xaiVideo{Video: raw}).video()
			_ = (&klingReply{}).UnmarshalJSON(raw)
			unquoted(raw)
		}
	})
}

func TestAWalkAllocatesNothing(t *testing.T) {
	raw := []byte(`{"videos":[],"RAIMEDIAFILTEREDREASONS":["a",{"b":"c"}],"url":"https://files.example/a","generateVideoResponse":{"generatedSamples":[{"video":{"uri":"u"}}]}}`)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for m := members(raw); m.next(); {
			if m.is("raiMediaFilteredReasons") || m.is("generateVideoResponse") {
				for i := items(m.value); i.next(); {
					_ = i.hasText()
				}
			}
		}
		textIn(raw, "url")
		withURL(raw, "url")
	}))
}
