package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

func TestTheAddressesOfAnOutput(t *testing.T) {
	const a, b, c = "https://h.example/a.mp4?sig=x&y=1", "http://h.example:80/b", "gs://bucket/c.mp4"
	for _, x := range []struct {
		output string
		want   []string
	}{
		{`"` + a + `"`, []string{a}},
		{`["` + b + `", "` + a + `", "` + b + `"]`, []string{b, a}},
		{` { "video" : { "url" : "` + a + `", "content_type": "video/mp4" }, "seed": 7 } `, []string{a}},
		{`[{"gcsUri":"` + c + `","mimeType":"video/mp4"}]`, []string{c}},
		{`[{"video":{"uri":"` + a + `"}},{"video":{"uri":"` + b + `"}}]`, []string{a, b}},
		{`{"last_frame_url":"` + b + `","video_url":"` + a + `"}`, []string{a, b}},
		{`{"thumbnail":{"url":"` + b + `"},"video":{"url":"` + a + `"}}`, []string{a, b}},
		{`{"image":"` + b + `","progress_video":"` + c + `","video":"` + a + `"}`, []string{a, b, c}},
		{`{"image":"` + b + `","video":null}`, []string{b}},
		{`{"images":[{"url":"` + b + `"},{"url":"` + a + `"}]}`, []string{b, a}},
		{`[{"id":"v","url":"` + a + `","watermarkUrl":"` + b + `","coverImage":"` + a + `"}]`, []string{a, b}},
		{`{"prompt":"` + b + `","input":{"image_url":"` + b + `"},"url":"` + a + `"}`, []string{a}},
		{`"HTTPS:\/\/h.example\/a\u0026b"`, []string{"HTTPS://h.example/a&b"}},
		{`{"file_url":"u","video_url":""}`, nil},
		{`{"text":"see https://h.example/a","more":"https://h.example/a and more"}`, nil},
		{`["/a.mp4","//h/a.mp4","ftp://h/a","data:video/mp4;base64,AAAA","https://","https://:80/a","https:///a","https://h example/","http:h","gs:b","https://%zz/"]`, nil},
		{`[{"bytesBase64Encoded":"httpAAAA","mimeType":"video/mp4"}]`, nil},
		{`{"https://h.example/name":1}`, nil},
		{`7`, nil}, {`null`, nil}, {`{}`, nil}, {`[]`, nil}, {`""`, nil}, {``, nil},
		{`["` + a + `"`, nil}, {`<html>` + a, nil}, {`"` + a + `" "` + b + `"`, nil},
		{strings.Repeat(`[`, 16) + `"` + a + `"` + strings.Repeat(`]`, 16), []string{a}},
		{strings.Repeat(`[`, 17) + `"` + a + `"` + strings.Repeat(`]`, 17), nil},
		{strings.Repeat(`[`, 9000) + `"` + a + `"` + strings.Repeat(`]`, 9000), nil},
	} {
		got := URLs(json.RawMessage(x.output))
		require.Equal(t, x.want, got, "%.200s", x.output)
	}
	require.Nil(t, URLs(nil))
}

// reportsIn are the reports that the fixtures of a provider are read as: of looks,
// fetches, submissions, lists and deliveries.
func reportsIn(t testing.TB, provider string) map[string]jobpoll.Report {
	all := map[string]jobpoll.Report{}
	add := func(name string, raw json.RawMessage) {
		var rep jobpoll.Report
		if raw != nil {
			require.NoError(t, json.Unmarshal(raw, &rep), name)
			all[name] = rep
		}
	}
	for _, file := range fixtureFiles(t, provider) {
		f := readFixture(t, file, "https://api.example.test")
		add(f.name, f.report)
		for id, r := range f.results {
			add(f.name+" "+id, r.Report)
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "testdata", "providers", provider, "webhook-*.json"))
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var f struct {
			Notice struct{ Report json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(raw, &f))
		add(filepath.Base(file), f.Notice.Report)
	}
	return all
}

// Of all adapters but those whose fixtures have none.
func TestEveryOutputOfAFixtureThatHoldsAnAddressGivesIt(t *testing.T) {
	address := regexp.MustCompile(`(?:https?|gs)://[^"]+`)
	none := []string{"google-lro"} // the response is whatever a service makes
	for _, provider := range everyAdapter() {
		found := 0
		for name, rep := range reportsIn(t, provider) {
			want := address.FindAllString(string(rep.Output), -1)
			got := URLs(rep.Output)
			require.Equal(t, want, got, "%s/%s: %s", provider, name, rep.Output)
			if rep.State == jobpoll.StateSucceeded {
				found += len(got)
			}
		}
		require.Equal(t, slices.Contains(none, provider), found == 0, provider)
	}
}

// Whatever the output is, what comes out is an address that stands in it, once.
func FuzzURLs(f *testing.F) {
	for _, provider := range everyAdapter() {
		for _, rep := range reportsIn(f, provider) {
			if rep.Output != nil {
				f.Add([]byte(rep.Output))
			}
		}
	}
	f.Add([]byte(`{"a":["https:\/\/h\/\u00e9",{"thumb":"gs://b/c"}]}`))
	f.Add([]byte(`[{"a"`))
	f.Add([]byte(strings.Repeat(`[`, 20)))
	f.Fuzz(func(t *testing.T, output []byte) {
		all := URLs(output)
		if !json.Valid(output) {
			require.Nil(t, all)
			return
		}
		var v any
		require.NoError(t, json.Unmarshal(output, &v))
		texts := map[string]bool{}
		var collect func(any)
		collect = func(v any) {
			switch v := v.(type) {
			case string:
				texts[v] = true
			case []any:
				for _, x := range v {
					collect(x)
				}
			case map[string]any:
				for _, x := range v {
					collect(x)
				}
			}
		}
		collect(v)
		seen := map[string]bool{}
		for _, u := range all {
			require.True(t, isURL(u), "%q", u)
			require.False(t, seen[u], "%q twice", u)
			seen[u] = true
			if !strings.Contains(string(output), `":`) { // of a name that comes twice package json keeps one
				require.True(t, texts[u], "%q", u)
			}
		}
	})
}
