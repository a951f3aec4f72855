package loopback_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

var update = flag.Bool("update", false, "write the golden files anew")

// request is one of a golden conversation.
type request struct {
	after  time.Duration // the clock moves by that before
	method string
	path   string
	body   string
	header []string
}

// Each conversation is one golden file: all requests with their answers.
func TestWiresAnswerAsTheProvidersDo(t *testing.T) {
	const key = "Bearer right"
	as := func(credential string) []string { return []string{"Authorization", credential} }
	life := `queued pos 3; at 8s running 20%; at 40s succeeded`
	submitted := func(method, path, id string) func(time.Duration) request {
		return func(after time.Duration) request {
			return request{after: after, method: method, path: path + id, header: as(key)}
		}
	}
	replicateID, atlasID, falID := loopback.Replicate().ID(1), loopback.Atlas().ID(1), loopback.Fal().ID(1)
	prediction := submitted("GET", "/v1/predictions/", replicateID)
	atlasPrediction := submitted("GET", "/api/v1/model/prediction/", atlasID)
	falKey := as("Key right")
	falGet := func(after time.Duration, path string) request {
		return request{after: after, method: "GET", path: "/fal-ai/kling/requests/" + falID + path, header: falKey}
	}
	miniMaxSubmit := request{method: "POST", path: "/v2/video_generation", body: `{"model":"m"}`, header: as(key)}
	falSubmit := request{method: "POST", path: "/fal-ai/kling/v2/image-to-video", body: `{"prompt":"a"}`, header: falKey}
	replicateSubmit := request{method: "POST", path: "/v1/predictions", body: `{"version":"v1","input":{"prompt":"a"}}`, header: as(key)}
	atlasSubmit := request{method: "POST", path: "/api/v1/model/generateVideo", body: `{"model":"m/v","prompt":"a"}`, header: as(key)}

	tests := []struct {
		name     string
		cfg      loopback.Config
		script   string
		requests []request
	}{
		{name: "replicate_life", cfg: loopback.Config{Wire: loopback.Replicate()}, script: life + " expires 1h", requests: []request{
			{method: "POST", path: "/v1/models/own/name/predictions", body: `{"input":{"prompt":"a"}}`, header: as(key)},
			prediction(0), prediction(10 * time.Second), prediction(40 * time.Second), prediction(time.Hour),
		}},
		{name: "replicate_ends", cfg: loopback.Config{Wire: loopback.Replicate()}, script: `running; at 2s failed; at 3s failed rejected "no face"; at 4s "odd"; at 5s unknown; at 6s canceled; at 7s expired`, requests: []request{ // B29(a)
			replicateSubmit, prediction(0), prediction(2 * time.Second), prediction(time.Second), prediction(time.Second), prediction(time.Second), prediction(time.Second), prediction(time.Second),
		}},
		{name: "replicate_cancel", cfg: loopback.Config{Wire: loopback.Replicate()}, script: life, requests: []request{
			replicateSubmit,
			{after: 9 * time.Second, method: "POST", path: "/v1/predictions/" + replicateID + "/cancel", header: as(key)},
			prediction(time.Second),
			{method: "POST", path: "/v1/predictions/" + replicateID + "/cancel", header: as(key)},
		}},
		{name: "replicate_list", cfg: loopback.Config{Wire: loopback.Replicate(), PageSize: 2}, script: life, requests: []request{
			replicateSubmit, replicateSubmit, replicateSubmit,
			{method: "GET", path: "/v1/predictions", header: as(key)},
			{method: "GET", path: "/v1/predictions?cursor=1", header: as(key)},
		}},
		{name: "replicate_deadline", cfg: loopback.Config{Wire: loopback.Replicate()}, script: life, requests: []request{
			{method: "POST", path: "/v1/predictions", body: `{"input":{}}`, header: append(as(key), "Cancel-After", "5s")},
			{method: "POST", path: "/v1/predictions", body: `{"input":{}}`, header: append(as(key), "Cancel-After", "10")},
			prediction(11 * time.Second),
			{method: "GET", path: "/v1/predictions/" + loopback.Replicate().ID(2), header: as(key)},
		}},
		{name: "replicate_refusals", cfg: loopback.Config{Wire: loopback.Replicate(), NotVisible: time.Second, MaxJobs: 1, Status: loopback.RateLimit{PerSecond: 0.5, Burst: 4}}, script: `429 "slow down" retry-after 7s`, requests: []request{
			{method: "POST", path: "/v1/predictions", body: `{}`},
			{method: "POST", path: "/v1/predictions", body: `{}`, header: as("Bearer wrong")},
			{method: "POST", path: "/v1/predictions", body: `[]`, header: as(key)},
			{method: "GET", path: "/v2/predictions", header: as(key)},
			{method: "GET", path: "/v1/predictions/none", header: as(key)},
			replicateSubmit, replicateSubmit,
			prediction(0), prediction(time.Second), prediction(0), prediction(0),
		}},
		{name: "fal_life", cfg: loopback.Config{Wire: loopback.Fal()}, script: life + ` output {"video":{"url":"https://files.example.test/<a>.mp4"}}`, requests: []request{
			falSubmit, falGet(0, "/status"), falGet(0, ""), falGet(9*time.Second, "/status?logs=1"), falGet(40*time.Second, "/status"), falGet(0, ""),
		}},
		{name: "fal_ends", cfg: loopback.Config{Wire: loopback.Fal()}, script: `failed; at 2s failed filtered "unsafe"; at 3s expired; at 4s "ODD"`, requests: []request{
			falSubmit, falGet(0, "/status"), falGet(0, ""), falGet(2*time.Second, "/status"), falGet(0, ""), falGet(time.Second, "/status"), falGet(0, ""), falGet(time.Second, "/status"),
		}},
		{name: "fal_cancel", cfg: loopback.Config{Wire: loopback.Fal()}, script: life, requests: []request{
			falSubmit,
			{method: "PUT", path: "/fal-ai/kling/requests/" + falID + "/cancel", header: falKey},
			falGet(0, "/status"), falGet(0, ""),
			{method: "PUT", path: "/fal-ai/kling/requests/" + falID + "/cancel", header: falKey},
			{method: "PUT", path: "/fal-ai/kling/requests/none/cancel", header: falKey},
		}},
		{name: "fal_queue", cfg: loopback.Config{Wire: loopback.Fal(), MaxJobs: 1}, script: `running; at 10s succeeded`, requests: []request{
			{method: "POST", path: "/fal-ai/other", body: `{}`, header: falKey},
			{method: "POST", path: "/workflows/own/flow", body: `{}`, header: falKey},
			{method: "POST", path: "/fal-ai/other", body: `{}`, header: falKey},
			{after: 9 * time.Second, method: "GET", path: "/fal-ai/other/requests/" + loopback.Fal().ID(3) + "/status", header: falKey},
			{after: time.Second, method: "GET", path: "/workflows/own/flow/requests/" + loopback.Fal().ID(2) + "/status", header: falKey},
			{after: 10 * time.Second, method: "GET", path: "/fal-ai/other/requests/" + loopback.Fal().ID(3) + "/status", header: falKey},
		}},
		{name: "fal_refusals", cfg: loopback.Config{Wire: loopback.Fal(), NotVisible: time.Second}, script: `503 retry-after 7s once; at 2s 504`, requests: []request{
			falGet(0, "/status"), falSubmit,
			falGet(0, "/status"), falGet(time.Second, "/status"), falGet(time.Second, "/status"),
			{method: "GET", path: "/fal-ai/kling/v2/image-to-video/requests/" + falID + "/status", header: falKey},
			{method: "POST", path: "/fal-ai/kling", body: `no`, header: falKey},
			{method: "POST", path: "/fal-ai/kling", body: `{}`, header: as("Key wrong")},
		}},
		{name: "atlas_life", cfg: loopback.Config{Wire: loopback.Atlas()}, script: life, requests: []request{
			atlasSubmit, atlasPrediction(0), atlasPrediction(9 * time.Second), atlasPrediction(40 * time.Second),
		}},
		{name: "atlas_ends", cfg: loopback.Config{Wire: loopback.Atlas()}, script: `failed filtered "nsfw"; at 1s canceled; at 2s expired; at 3s succeeded output "https://files.example.test/a.mp4"; at 4s succeeded output null`, requests: []request{
			atlasSubmit, atlasPrediction(0), atlasPrediction(time.Second), atlasPrediction(time.Second), atlasPrediction(time.Second), atlasPrediction(time.Second),
		}},
		{name: "atlas_refusals", cfg: loopback.Config{Wire: loopback.Atlas(), NotVisible: 30 * time.Second, Submit: loopback.RateLimit{PerSecond: 0.1}, MaxJobs: 1}, script: life, requests: []request{
			atlasSubmit, atlasPrediction(time.Second), atlasPrediction(time.Second), atlasPrediction(28 * time.Second),
			{method: "GET", path: "/api/v1/model/prediction/none", header: as(key)},
			{method: "GET", path: "/api/v2/model/prediction/x", header: as(key)},
			{method: "GET", path: "/api/v1/model/prediction/x", header: as("Bearer wrong")},
			atlasSubmit, atlasSubmit,
		}},
		{name: "minimax2_cancel", cfg: loopback.Config{Wire: loopback.MiniMaxV2()}, script: life, requests: []request{
			miniMaxSubmit, miniMaxSubmit, miniMaxSubmit,
			submitted("DELETE", "/v2/video_generation/", loopback.MiniMaxV2().ID(1))(0),
			submitted("GET", "/v2/query/video_generation/", loopback.MiniMaxV2().ID(1))(0),
			submitted("DELETE", "/v2/video_generation/", loopback.MiniMaxV2().ID(2))(9 * time.Second),
			submitted("DELETE", "/v2/video_generation/", loopback.MiniMaxV2().ID(3))(time.Minute),
			submitted("GET", "/v2/query/video_generation/", loopback.MiniMaxV2().ID(3))(0),
			submitted("GET", "/v2/query/video_generation", "")(0),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := polltest.NewClock(time.Time{})
			cfg := tt.cfg
			cfg.Clock, cfg.Credential = clock, "right"
			cfg.Script = func(int, json.RawMessage) string { return tt.script }
			server := started(t, cfg)
			c := client(t)
			var b strings.Builder
			for _, r := range tt.requests {
				clock.Advance(r.after)
				resp, body := do(t, c, r.method, server.URL()+r.path, r.body, r.header...)
				text := fmt.Sprintf("+%v %s %s %s\n%s\n%s\n", clock.Monotonic(), r.method, r.path, r.body, head(resp), body)
				fmt.Fprintln(&b, strings.ReplaceAll(text, server.URL(), "http://server"))
			}
			checkGolden(t, tt.name, b.String())
		})
	}
}

// head is the status and the headers but those that tell what is in the body.
func head(resp *http.Response) string {
	lines := []string{fmt.Sprint(resp.StatusCode)}
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if name != "Content-Length" {
			lines = append(lines, name+": "+strings.Join(resp.Header[name], " | "))
		}
	}
	return strings.Join(lines, "\n")
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "if the change is meant: go test -run %s -update", t.Name())
}
