package provider_test

import (
	"encoding/json"
	"fmt"

	"github.com/jobpoll/jobpoll/provider"
)

// Where the video is, whichever adapter the output is of.
func ExampleURLs() {
	for _, output := range []string{
		`"https://files.example/replicate.mp4"`,
		`["https://cdn.example/runway.mp4"]`,
		`{"video": {"url": "https://cdn.example/fal.mp4"}, "seed": 7}`,
		`{"last_frame_url": "https://cdn.example/ark.png", "video_url": "https://cdn.example/ark.mp4"}`,
		`[{"gcsUri": "gs://bucket/veo.mp4", "mimeType": "video/mp4"}]`,
		`[{"bytesBase64Encoded": "AAAA", "mimeType": "video/mp4"}]`,
	} {
		fmt.Println(provider.URLs(json.RawMessage(output)))
	}
	// Output:
	// [https://files.example/replicate.mp4]
	// [https://cdn.example/runway.mp4]
	// [https://cdn.example/fal.mp4]
	// [https://cdn.example/ark.mp4 https://cdn.example/ark.png]
	// [gs://bucket/veo.mp4]
	// []
}
