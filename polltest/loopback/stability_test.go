package loopback_test

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

func TestAFilteredVideoOfStabilityIsThereAsAnyOther(t *testing.T) {
	for script, reason := range map[string]string{`succeeded`: "SUCCESS", `failed filtered "unsafe"`: "CONTENT_FILTERED"} {
		server := started(t, loopback.Config{Wire: loopback.Stability(), Script: func(int, json.RawMessage) string { return script }})
		c := client(t)
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		part, err := w.CreateFormFile("image", "a.png")
		require.NoError(t, err)
		_, err = part.Write([]byte("an image"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		resp, body := do(t, c, "POST", server.URL()+"/v2beta/image-to-video", form.String(), "Content-Type", w.FormDataContentType())
		require.Equal(t, http.StatusOK, resp.StatusCode, body)

		at := server.URL() + "/v2beta/image-to-video/result/" + field(t, body, "id").(string)
		resp, body = do(t, c, "GET", at, "")
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.JSONEq(t, `{"video":"AAAAGGZ0eXBtcDQy","finish_reason":"`+reason+`","seed":1}`, body)

		resp, body = do(t, c, "GET", at, "", "Accept", "video/*")
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Equal(t, "video/mp4", resp.Header.Get("Content-Type"))
		assert.Equal(t, reason, resp.Header.Get("Finish-Reason"))
		assert.Equal(t, "\x00\x00\x00\x18ftypmp42", body)
	}
}
