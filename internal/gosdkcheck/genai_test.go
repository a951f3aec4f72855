package gosdkcheck

import (
	"context"
	"net/http"
	"testing"

	"cloud.google.com/go/auth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

const veoModel = "veo-3.1-generate-001"

// token is a provider of tokens that has this one alone, so that no host is asked.
type token string

func (t token) Token(context.Context) (*auth.Token, error) { return &auth.Token{Value: string(t)}, nil }

// veo is one of the two services, and how its client is made.
type veo struct {
	name string
	wire loopback.Wire
	cfg  func(credential string) genai.ClientConfig
}

var veos = []veo{
	{"Gemini", loopback.Veo(), func(credential string) genai.ClientConfig {
		return genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: credential}
	}},
	{"Vertex", loopback.VertexVeo(), func(credential string) genai.ClientConfig {
		return genai.ClientConfig{
			Backend: genai.BackendVertexAI, Project: "p", Location: "us-central1",
			Credentials: auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: token(credential)}),
		}
	}},
}

func (v veo) client(t *testing.T, server *loopback.Server, credential string) *genai.Client {
	cfg := v.cfg(credential)
	cfg.HTTPOptions.BaseURL = server.URL()
	client, err := genai.NewClient(limit(t), &cfg)
	require.NoError(t, err)
	return client
}

var source = &genai.GenerateVideosSource{Prompt: "a cat"}

// generate is the loop of the client's documents.
func generate(t *testing.T, c *genai.Client) (*genai.GenerateVideosOperation, error) {
	op, err := c.Models.GenerateVideosFromSource(limit(t), veoModel, source, nil)
	for err == nil && !op.Done {
		op, err = c.Operations.GetVideosOperation(limit(t), op, nil)
	}
	return op, err
}

func each(t *testing.T, script string, test func(*testing.T, veo, *loopback.Server)) {
	for _, v := range veos {
		t.Run(v.name, func(t *testing.T) { test(t, v, aim(t, v.wire, script)) })
	}
}

func TestTheClientOfVeoLooksUntilTheVideoIsThere(t *testing.T) {
	each(t, succeeds, func(t *testing.T, v veo, server *loopback.Server) {
		c := v.client(t, server, key)
		op, err := generate(t, c)
		require.NoError(t, err)
		require.Len(t, op.Response.GeneratedVideos, 1)
		got := op.Response.GeneratedVideos[0].Video
		assert.Greater(t, server.Stats().Statuses, 2)
		if v.name == "Vertex" {
			assert.Regexp(t, `^gs://.*\.mp4$`, got.URI)
			assert.Equal(t, "video/mp4", got.MIMEType)
			return
		}
		content, err := c.Files.Download(limit(t), genai.NewDownloadURIFromGeneratedVideo(op.Response.GeneratedVideos[0]), nil)
		require.NoError(t, err)
		assert.Equal(t, "the video "+server.Jobs()[0], string(content))
		assert.Equal(t, content, got.VideoBytes)
	})
}

func TestAVideoOfVeoThatFailedSaysWhy(t *testing.T) {
	for script, code := range map[string]float64{fails: 13, rejected: 3, canceled: 1, expires: 4} {
		each(t, script, func(t *testing.T, v veo, server *loopback.Server) {
			op, err := generate(t, v.client(t, server, key))
			require.NoError(t, err)
			assert.Nil(t, op.Response)
			assert.Equal(t, code, op.Error["code"])
			assert.NotEmpty(t, op.Error["message"])
		})
	}
}

func TestAFilteredVideoOfVeoHasAReasonAndNoError(t *testing.T) {
	each(t, filtered, func(t *testing.T, v veo, server *loopback.Server) {
		op, err := generate(t, v.client(t, server, key))
		require.NoError(t, err)
		assert.Empty(t, op.Error)
		assert.Empty(t, op.Response.GeneratedVideos)
		assert.EqualValues(t, 1, op.Response.RAIMediaFilteredCount)
		assert.Equal(t, []string{"unsafe"}, op.Response.RAIMediaFilteredReasons)
	})
}

// It repeats only where it is told to, and does not heed a wait that it is told.
func TestALookThatIsRefusedIsRepeatedByTheClientOfVeo(t *testing.T) {
	for _, script := range []string{busy, gateway} {
		each(t, script, func(t *testing.T, v veo, server *loopback.Server) {
			v.cfg = func(of func(string) genai.ClientConfig) func(string) genai.ClientConfig {
				return func(credential string) genai.ClientConfig {
					cfg := of(credential)
					cfg.HTTPOptions.RetryOptions = &genai.HTTPRetryOptions{
						Attempts: genai.Ptr[int32](3), InitialDelay: genai.Ptr(0.001), MaxDelay: genai.Ptr(0.001), Jitter: genai.Ptr(0.0),
					}
					return cfg
				}
			}(v.cfg)
			op, err := generate(t, v.client(t, server, key))
			require.NoError(t, err)
			assert.Len(t, op.Response.GeneratedVideos, 1)
			assert.Equal(t, 1, server.Stats().Faults)
		})
	}
}

func TestErrorsOfVeoAreToldByStatus(t *testing.T) {
	each(t, refused, func(t *testing.T, v veo, server *loopback.Server) {
		c := v.client(t, server, key)
		op, err := c.Models.GenerateVideosFromSource(limit(t), veoModel, source, nil)
		require.NoError(t, err)
		_, err = c.Operations.GetVideosOperation(limit(t), op, nil)
		told(t, err, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED")

		op.Name += "x"
		_, err = c.Operations.GetVideosOperation(limit(t), op, nil)
		told(t, err, http.StatusNotFound, "NOT_FOUND")

		_, err = v.client(t, server, wrong).Models.GenerateVideosFromSource(limit(t), veoModel, source, nil)
		told(t, err, http.StatusUnauthorized, "UNAUTHENTICATED")
		assert.Equal(t, 1, server.Stats().Accepted)
	})
}

func told(t *testing.T, err error, code int, status string) {
	t.Helper()
	var e genai.APIError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, code, e.Code)
	assert.Equal(t, status, e.Status)
	assert.NotEmpty(t, e.Message)
}
