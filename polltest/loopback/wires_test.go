package loopback_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// One job's life in each wire is one golden file.
func TestEachWireTellsAJobsLife(t *testing.T) {
	header := []string{
		"Authorization", "Bearer right", "X-Goog-Api-Key", "right", "X-Runway-Version", "2024-11-06", "X-DashScope-Async", "enable",
	}
	const (
		object = `{"model":"m","prompt":"a"}`
		form   = "--x\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\nan image\r\n--x--\r\n"
	)
	vertex := "/v1/projects/p/locations/l/publishers/google/models/m"
	asks := map[string]string{"vertex": `{"operationName":"projects/p/locations/l/publishers/google/models/m/operations/ID"}`} // by a POST
	forms := map[string]bool{"stability": true}
	tests := []struct {
		name, submit, look string
		wire               loopback.Wire
	}{
		{"runway", "/v1/text_to_video", "/v1/tasks/ID", loopback.Runway()},
		{"luma", "/dream-machine/v1/generations", "/dream-machine/v1/generations/ID", loopback.Luma()},
		{"openai", "/v1/videos", "/v1/videos/ID", loopback.OpenAI()},
		{"kling", "/v1/videos/text2video", "/v1/videos/text2video/ID", loopback.Kling()},
		{"kling3", "/text-to-video/kling-3.0", "/tasks?task_ids=ID", loopback.Kling()},
		{"minimax", "/v1/video_generation", "/v1/query/video_generation?task_id=ID", loopback.MiniMax()},
		{"minimax2", "/v2/video_generation", "/v2/query/video_generation/ID", loopback.MiniMaxV2()},
		{"veo", "/v1beta/models/veo-x:predictLongRunning", "/v1beta/models/veo-x/operations/ID", loopback.Veo()},
		{"vertex", vertex + ":predictLongRunning", vertex + ":fetchPredictOperation", loopback.VertexVeo()},
		{"google-lro", "/v1/projects/p/videos:generate", "/v1/projects/p/operations/ID", loopback.GoogleLRO()},
		{"dashscope", "/api/v1/services/aigc/video-generation/video-synthesis", "/api/v1/tasks/ID", loopback.DashScope()},
		{"ark", "/api/v3/contents/generations/tasks", "/api/v3/contents/generations/tasks/ID", loopback.Ark()},
		{"wavespeed", "/api/v3/own/model", "/api/v3/predictions/ID/result", loopback.WaveSpeed()},
		{"xai", "/v1/videos/generations", "/v1/videos/ID", loopback.XAI()},
		{"stability", "/v2beta/image-to-video", "/v2beta/image-to-video/result/ID", loopback.Stability()},
		{"azure-lro", "/videos:generate?api-version=1", "/operations/ID?api-version=1", loopback.AzureLRO()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := polltest.NewClock(time.Time{})
			scripts := []string{"", `queued pos 2; at 8s running 20%; at 40s succeeded`, `failed fault "out of memory"`, `failed filtered "unsafe"`}
			server := started(t, loopback.Config{
				Wire: tt.wire, Clock: clock, Credential: "right", Script: func(n int, _ json.RawMessage) string { return scripts[n] },
			})
			c := client(t)
			var b strings.Builder
			ask := func(method, path, body string, header ...string) {
				resp, text := do(t, c, method, server.URL()+path, body, header...)
				text = fmt.Sprintf("+%v %s %s %s\n%s\n%s\n", clock.Monotonic(), method, path, body, head(resp), text)
				fmt.Fprintln(&b, strings.NewReplacer(server.URL(), "http://server", form, "(a form with an image)").Replace(text))
			}
			look := func(n int, header ...string) {
				method, body := "GET", strings.ReplaceAll(asks[tt.name], "ID", tt.wire.ID(n))
				if body != "" {
					method = "POST"
				}
				ask(method, strings.ReplaceAll(tt.look, "ID", tt.wire.ID(n)), body, header...)
			}
			for range scripts[1:] {
				if forms[tt.name] {
					ask("POST", tt.submit, form, append([]string{"Content-Type", "multipart/form-data; boundary=x"}, header...)...)
				} else {
					ask("POST", tt.submit, object, header...)
				}
			}
			for _, wait := range []time.Duration{0, 10 * time.Second, 40 * time.Second} {
				clock.Advance(wait)
				look(1, header...)
			}
			look(2, header...)
			look(3, header...)
			look(9, header...)
			look(1)
			checkGolden(t, "life_"+tt.name, b.String())
		})
	}
}
