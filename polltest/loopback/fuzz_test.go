package loopback_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

func everyWire() []loopback.Wire {
	return []loopback.Wire{
		loopback.Fal(), loopback.Replicate(), loopback.Atlas(), loopback.Runway(), loopback.Luma(), loopback.OpenAI(), loopback.Kling(),
		loopback.MiniMax(), loopback.Veo(), loopback.VertexVeo(), loopback.GoogleLRO(), loopback.DashScope(), loopback.Ark(),
		loopback.WaveSpeed(), loopback.XAI(), loopback.Stability(), loopback.AzureLRO(), loopback.MiniMaxV2(),
	}
}

// Whatever is asked, a wire has an answer of HTTP.
func FuzzWiresAnswerAnyRequest(f *testing.F) {
	for _, path := range []string{
		"", "/", "//", "/v1/predictions", "/v1/predictions/job", "/v1/predictions/job/cancel", "/v1/models/a/b/predictions",
		"/a/b", "/workflows/a", "/workflows/a/b/requests/job/status", "/a/b/requests/job", "/a/b/requests/job/cancel",
		"/api/v1/model/generateVideo", "/api/v1/model/prediction/job", "/api/v1/model/prediction/",
		"/v1/image_to_video", "/v1/tasks/job", "/dream-machine/v1/generations", "/dream-machine/v1/generations/job",
		"/v1/videos", "/v1/videos/job", "/v1/videos/job/content", "/v1/videos/text2video", "/v1/videos/text2video/job", "/tasks",
		"/v1/video_generation", "/v1/query/video_generation", "/v1/files/retrieve", "/v1beta/models/m:predictLongRunning",
		"/v1/models/m:fetchPredictOperation", "/v1/projects/p/operations/job", "/v1/projects/p/operations/job:cancel",
		"/api/v1/services/aigc/x", "/api/v1/tasks/job", "/api/v1/tasks/job/cancel", "/api/v3/contents/generations/tasks",
		"/api/v3/contents/generations/tasks/job", "/api/v3/m", "/api/v3/predictions/job/result", "/v1/videos/generations",
		"/v2beta/image-to-video", "/v2beta/image-to-video/result/job", "/operations/job",
		"/v2/video_generation", "/v2/video_generation/job", "/v2/query/video_generation", "/v2/query/video_generation/job",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			f.Add(method, path, "cursor=-9&logs=1&task_id=job&file_id=205job&task_ids=job&offset=-3&after=x&api-version=1", "Bearer x", "-5s", `{"input":{"a":[]},"version":1}`)
		}
	}
	f.Fuzz(func(t *testing.T, method, path, query, authorization, deadline, body string) {
		for _, wire := range everyWire() {
			server := loopback.New(loopback.Config{Wire: wire})
			server.Add("job", "running 20% eta 3s")
			w := httptest.NewRecorder()
			server.ServeHTTP(w, &http.Request{
				Method: method, URL: &url.URL{Path: path, RawQuery: query}, Host: "server", Body: io.NopCloser(strings.NewReader(body)),
				Header: http.Header{
					"Authorization": {authorization}, "Cancel-After": {deadline}, "X-Runway-Version": {"1"}, "X-Dashscope-Async": {"enable"},
				},
			})
			if w.Code < 200 || w.Code > 599 {
				t.Errorf("%T answers with %d", wire, w.Code)
			}
			server.Close()
		}
	})
}
